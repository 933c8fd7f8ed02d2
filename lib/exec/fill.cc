#include "lib/exec/fill.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kernels/cast/cast.h"
#include "kernels/strided_copy/strided_copy.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/index/join.h"
#include "lib/index/strided_copy.h"
#include "lib/store/local/file.h"

namespace shardtool::exec {
namespace {

using index::HolderJoin;
using Bytes = std::vector<std::byte>;

/// Row-major bytes of some consecutive indices of the first axis.
struct Rows {
  i64 begin = 0;
  Shape extents;
  Bytes bytes;
};

Error too_large(const TensorMove& move, i64 bytes) {
  return Error(ErrorCode::kLimit,
               fmt::format("padding that repeats elements needs {} of the tensor in memory",
                           format_bytes(bytes)))
      .tensor(move.name)
      .note("limit", format_bytes(kMaxFilledBytes))
      .help("choose another policy, or a mesh size whose cuts need no padding");
}

/// Allocates rows [begin, begin + count) of a holder.
Rows rows_of(const TensorMove& move, const index::HolderSet& holders, int holder, i64 begin,
             i64 count, Dtype dtype) {
  Rows rows{begin, holders.local_shape(holder), {}};
  rows.extents[0] = count;
  const i64 bytes = byte_size(dtype, rows.extents).value_or(kMaxFilledBytes + 1);
  if (bytes > kMaxFilledBytes) throw too_large(move, bytes);
  rows.bytes.resize(static_cast<size_t>(bytes));
  return rows;
}

/// Offset of rows in the file of a slot.
i64 offset_of(const Slot& slot, const Rows& rows, Dtype dtype) {
  Shape before = rows.extents;
  before[0] = rows.begin;
  return slot.offset + *byte_size(dtype, before);
}

Bytes cast_elements(Dtype from, Dtype to, const Bytes& elements) {
  const i64 n = std::ssize(elements) / (bits(from) / 8);
  Bytes results(static_cast<size_t>(n * bits(to) / 8));
  kernels::cast(from, to, elements.data(), n, results.data());
  return results;
}

/// One box of a move: reads the surrounding rows, copies into them, writes them back.
class Box {
 public:
  Box(const TensorMove& move, std::span<const i64> sizes) : move_(move), sizes_(sizes) {}

  Rows read(const HolderJoin::Located& source, std::span<const SourceFile> files) const {
    const int holder = source.holders.front();
    Rows rows =
        rows_of(move_, *move_.from.holders, holder, source.local[0], sizes_[0], move_.dtype);
    if (move_.computed) return computed(std::move(rows), files);
    const Slot& slot = move_.from.slots[static_cast<size_t>(holder)];
    iovec part{rows.bytes.data(), rows.bytes.size()};
    files[static_cast<size_t>(slot.file)].read_scattered({&part, 1},
                                                         offset_of(slot, rows, move_.dtype));
    if (move_.cast_to) rows.bytes = cast_elements(move_.dtype, *move_.cast_to, rows.bytes);
    return rows;
  }

  void write(const Rows& from, const HolderJoin::Located& source, int holder,
             const HolderJoin::Located& wanted, std::span<const TargetFile> files) const {
    const Dtype dtype = move_.result_dtype();
    Rows rows = rows_of(move_, *move_.to.holders, holder, wanted.local[0], sizes_[0], dtype);
    const Slot& slot = move_.to.slots[static_cast<size_t>(holder)];
    const i64 offset = offset_of(slot, rows, dtype);
    const TargetFile& file = files[static_cast<size_t>(slot.file)];
    store::read_exact(store::open_read(file.path()), rows.bytes, offset);
    std::vector<i64> src = source.local;
    std::vector<i64> dst = wanted.local;
    src[0] = dst[0] = 0;  // both begin with the box's first row
    const auto copy = index::lower(sizes_, {src, from.extents}, {dst, rows.extents}, bits(dtype));
    if (!copy)
      throw Error(ErrorCode::kUnsupported, "elements of less than a byte cannot be repeated")
          .tensor(move_.name);
    kernels::strided_copy(*copy, from.bytes.data(), rows.bytes.data());
    file.write(rows.bytes, offset);
  }

 private:
  Rows computed(Rows rows, std::span<const SourceFile> files) const {
    ComputedBox box;
    box.columns = rows.extents.back();
    const i64 row_bytes = box.columns * bits(move_.dtype) / 8;
    const i64 of_index = *element_count(rows.extents) / box.columns / rows.extents.front();
    box.row = rows.begin * of_index;
    box.rows = rows.extents.front() * of_index;
    box.memory = rows.bytes.data();
    box.stride = row_bytes;
    ComputedReport known;  // the copy counted these elements
    move_.computed->compute(box, files, known);
    return rows;
  }

  const TensorMove& move_;
  std::span<const i64> sizes_;
};

void fill_one(const TensorMove& move, std::span<const SourceFile> sources,
              std::span<const TargetFile> targets) {
  const HolderJoin join(*move.from.holders, *move.to.holders);
  join.for_each_box([&](HolderJoin::Box cells) {
    const Shape sizes = index::sizes(cells);
    const HolderJoin::Located source = join.source_of(cells);
    const Box box(move, sizes);
    const Rows rows = box.read(source, sources);
    for (const HolderJoin::Located& wanted : join.destinations_of(cells)) {
      for (const int holder : wanted.holders) box.write(rows, source, holder, wanted, targets);
    }
  });
}

}  // namespace

void fill(std::span<const TensorMove> moves, std::span<const SourceFile> sources,
          std::span<const TargetFile> targets) {
  for (const TensorMove& move : moves) fill_one(move, sources, targets);
  for (const SourceFile& source : sources) source.check_unchanged();
}

}  // namespace shardtool::exec
