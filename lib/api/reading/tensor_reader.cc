#include "lib/api/reading/tensor_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <utility>

#include "kernels/strided_copy/strided_copy.h"
#include "lib/base/error.h"
#include "lib/exec/files/stored_box.h"
#include "lib/exec/workers.h"

namespace shardtool::api {
namespace {

/// Bytes that a thread reads at a time.
constexpr i64 kPartBytes = 8 << 20;
/// Bytes that a thread copies at a time; to copy less takes no longer than to start a thread.
constexpr i64 kCopiedBytes = 1 << 20;

/// Runs task(0) to task(count - 1) on some threads, and throws the first error.
template <class Task>
void run_parts(i64 count, int threads, const Task& task) {
  std::atomic<i64> next = 0;
  exec::run_workers(std::min<i64>(threads, count), [&](const std::atomic<bool>& stop) {
    for (i64 part = next++; part < count && !stop; part = next++) task(part);
  });
}

}  // namespace

/// A box of the array, some indices of its first axis at a time.
struct TensorReader::Rows {
  Shape begin;
  Shape sizes;
};

TensorReader::TensorReader(Place place, std::span<const exec::SourceFile> files)
    : place_(std::move(place)), files_(files), shape_(index::local_shape(place_.region)) {}

i64 TensorReader::bytes_of(std::span<const i64> sizes) const {
  if (const auto bytes = byte_size(dtype(), {sizes.begin(), sizes.end()})) return *bytes;
  throw Error(ErrorCode::kSubByteCut, "the box is not a whole number of bytes")
      .tensor(place_.stored.name)
      .note("dtype", std::string(to_string(dtype())))
      .help("read more of the last axis, or the whole tensor");
}

void TensorReader::read(std::span<const i64> begin, std::span<const i64> sizes, int threads,
                        std::span<std::byte> bytes) const {
  const Rows all{{begin.begin(), begin.end()}, {sizes.begin(), sizes.end()}};
  const i64 rows = sizes.empty() ? 1 : sizes.front();
  const i64 total = std::ssize(bytes);
  if (total == 0) return;
  const i64 row_bytes = total / rows;
  const bool divides = bits(dtype()) % CHAR_BIT == 0 && !sizes.empty();
  const i64 step = divides ? std::max<i64>(1, kPartBytes / std::max<i64>(row_bytes, 1)) : rows;
  run_parts(ceil_div(rows, step), threads, [&](i64 part) {
    if (step >= rows) return read_rows(all, bytes);
    Rows some = all;
    some.begin.front() += part * step;
    some.sizes.front() = std::min(step, rows - part * step);
    read_rows(some, bytes.subspan(static_cast<size_t>(part * step * row_bytes),
                                  static_cast<size_t>(some.sizes.front() * row_bytes)));
  });
}

index::Region TensorReader::part_of(const index::Region& region, const Rows& rows) const {
  index::Region part;
  for (size_t a = 0; a < region.size(); ++a) {
    const i64 begin = rows.begin[a];
    part.push_back(
        compose(region[a], index::AxisMap::slice(shape_[a], {begin, begin + rows.sizes[a]})));
  }
  return part;
}

void TensorReader::read_rows(const Rows& rows, std::span<std::byte> bytes) const {
  const index::Region wanted = part_of(place_.region, rows);
  if (index::image_size(wanted) != element_count(rows.sizes)) {
    std::ranges::fill(bytes, std::byte{0});
  }
  exec::read_region(place_.stored, place_.side, wanted, files_, bytes);
  for (const index::Region& fill : place_.fills) {
    exec::read_region(place_.stored, place_.side, part_of(fill, rows), files_, bytes);
  }
}

void TensorReader::FileBox::copy_out(const std::byte* range, int threads, std::byte* into) const {
  const i64 rows = copy.loops.empty() ? 1 : copy.loops.front().count;
  const i64 parts = std::min(rows, ceil_div(index::byte_count(copy), kCopiedBytes));
  run_parts(parts, threads, [&](i64 part) {
    const i64 begin = part * rows / parts;
    const i64 end = (part + 1) * rows / parts;
    kernels::strided_copy(index::rows_of(copy, rows, begin, end), range, into);
  });
}

std::optional<TensorReader::FileBox> TensorReader::in_file(std::span<const i64> begin,
                                                           std::span<const i64> sizes) const {
  const Rows rows{{begin.begin(), begin.end()}, {sizes.begin(), sizes.end()}};
  const auto boxes = index::placed_boxes(part_of(place_.region, rows));
  if (!place_.side.holders->is_whole() || !place_.fills.empty() || boxes.size() != 1)
    return std::nullopt;
  if (boxes.front().sizes != rows.sizes || element_count(rows.sizes) == 0) return std::nullopt;
  const Shape origin(sizes.size(), 0);
  const auto copy = index::lower(sizes, {boxes.front().global, place_.stored.shape},
                                 {origin, rows.sizes}, bits(dtype()));
  if (!copy) return std::nullopt;
  i64 length = copy->run;
  for (const index::Loop& loop : copy->loops) length += (loop.count - 1) * loop.src_stride;
  const exec::Slot& slot = place_.side.slots.front();
  const exec::SourceFile& file = files_[static_cast<size_t>(slot.file)];
  if (file.is_remote()) return std::nullopt;
  index::StridedCopy from_range = *copy;
  from_range.src = 0;
  return FileBox{&file, slot.offset + copy->src, length, from_range};
}

}  // namespace shardtool::api
