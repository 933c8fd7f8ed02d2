#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/exec/files/data_file.h"
#include "lib/exec/move.h"
#include "lib/index/region.h"
#include "lib/index/strided_copy.h"

namespace shardtool::api {

/// A tensor, or a rank's shard of one, whose bytes are read in boxes. Its files must outlive it.
class TensorReader {
 public:
  /// Range of a local file with all bytes of a box, and the copy of the box out of the range.
  /// Without loops the range is the box.
  struct FileBox {
    const exec::SourceFile* file = nullptr;
    i64 offset = 0;
    i64 bytes = 0;
    index::StridedCopy copy;

    /// Copies the box out of the range that lies at `range`. Several threads, `threads` at most,
    /// copy a long one: pages that are touched first take longer than the copy.
    void copy_out(const std::byte* range, int threads, std::byte* into) const;
  };

  /// Array of the region's local shape, filled from the holders of `stored`; `fills` are the copies
  /// in its padding (layout::Layout::fills), the rest of which is zero.
  struct Place {
    TensorSpec stored;
    exec::MoveSide side;
    index::Region region;
    std::vector<index::Region> fills = {};
  };
  TensorReader(Place place, std::span<const exec::SourceFile> files);

  Dtype dtype() const { return place_.stored.dtype; }
  const Shape& shape() const { return shape_; }
  /// Bytes of a box of these sizes. Throws kSubByteCut if they are not whole bytes.
  i64 bytes_of(std::span<const i64> sizes) const;

  /// Reads the box at `begin`, row-major, and no byte of the files outside of it. Long boxes are
  /// read by up to `threads` threads. Requires the box to be inside shape(), and its bytes. Throws
  /// the errors of exec::read_region.
  void read(std::span<const i64> begin, std::span<const i64> sizes, int threads,
            std::span<std::byte> bytes) const;
  /// Returns the box where one local file has it as one box; nullopt otherwise, and for an empty
  /// box.
  std::optional<FileBox> in_file(std::span<const i64> begin, std::span<const i64> sizes) const;

 private:
  struct Rows;
  void read_rows(const Rows& rows, std::span<std::byte> bytes) const;
  index::Region part_of(const index::Region& region, const Rows& rows) const;

  Place place_;
  std::span<const exec::SourceFile> files_;
  Shape shape_;
};

}  // namespace shardtool::api
