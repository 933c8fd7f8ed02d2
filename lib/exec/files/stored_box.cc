#include "lib/exec/files/stored_box.h"

#include <cstring>
#include <optional>

#include "lib/base/error.h"
#include "lib/exec/chunks/cast_chunk.h"
#include "lib/exec/files/page_buffer.h"
#include "lib/index/join.h"
#include "lib/index/strided_copy.h"

namespace shardtool::exec {
namespace {

/// A box in a holder's row-major elements and in the memory.
struct BoxPart {
  const Slot& slot;
  std::vector<i64> sizes;
  std::vector<i64> local;  ///< begin in the holder
  Shape extents;           ///< of the holder
  std::vector<i64> at;     ///< begin in the memory
};

void read_part(const BoxPart& part, const Shape& memory_extents, const TensorSpec& spec,
               std::span<const SourceFile> files, std::span<std::byte> bytes) {
  const auto copy = index::lower(part.sizes, {part.local, part.extents}, {part.at, memory_extents},
                                 bits(spec.dtype));
  if (!copy) {
    throw Error(ErrorCode::kSubByteCut, "rows of the box do not begin and end at whole bytes")
        .tensor(spec.name)
        .note("dtype", std::string(to_string(spec.dtype)))
        .help("read more of the last axis, or the whole tensor");
  }
  const SourceFile& file = files[static_cast<size_t>(part.slot.file)];
  for_each_run(*copy, [&](i64 src, i64 dst) {
    read_from(file, bytes.subspan(static_cast<size_t>(dst), static_cast<size_t>(copy->run)),
              part.slot.offset + src);
  });
}

index::Region region_of(const Shape& shape, std::span<const i64> begin,
                        std::span<const i64> sizes) {
  index::Region region;
  for (size_t a = 0; a < shape.size(); ++a) {
    region.push_back(index::AxisMap::slice(shape[a], {begin[a], begin[a] + sizes[a]}));
  }
  return region;
}

}  // namespace

void read_from(const SourceFile& file, std::span<std::byte> bytes, i64 offset) {
  const i64 size = std::ssize(bytes);
  if (size == 0) return;
  if (!file.wants_direct(offset, size)) return file.read_exact(bytes, offset);
  thread_local std::optional<PageBuffer> pages;
  thread_local i64 room = 0;
  if (size > room) {
    pages.emplace(size + 2 * kPageBytes);
    room = size;
  }
  const std::byte* const from = file.read(pages->data(), size, offset);
  std::memcpy(bytes.data(), from, bytes.size());
}

void read_box(const TensorSpec& spec, const MoveSide& side, std::span<const i64> begin,
              std::span<const i64> sizes, std::span<const SourceFile> files,
              std::span<std::byte> bytes) {
  const Shape extents(sizes.begin(), sizes.end());
  if (side.holders->is_whole()) {
    return read_part({side.slots.front(),
                      extents,
                      {begin.begin(), begin.end()},
                      spec.shape,
                      std::vector<i64>(sizes.size(), 0)},
                     extents, spec, files, bytes);
  }
  read_region(spec, side, region_of(spec.shape, begin, sizes), files, bytes);
}

void read_region(const TensorSpec& spec, const MoveSide& side, const index::Region& region,
                 std::span<const SourceFile> files, std::span<std::byte> bytes) {
  const index::HolderSet wanted = index::HolderSet::of(spec.shape, {&region, 1});
  const Shape extents = wanted.local_shape(0);
  const index::HolderJoin join(*side.holders, wanted);
  join.for_each_box([&](index::HolderJoin::Box box) {
    const index::HolderJoin::Located source = join.source_of(box);
    if (source.holders.empty()) {
      throw Error(ErrorCode::kCoverage, "no shard holds some of a tensor's elements")
          .tensor(spec.name);
    }
    const int holder = source.holders.front();
    const BoxPart part{side.slots[static_cast<size_t>(holder)], index::sizes(box), source.local,
                       side.holders->local_shape(holder), join.destinations_of(box).front().local};
    read_part(part, extents, spec, files, bytes);
  });
}

}  // namespace shardtool::exec
