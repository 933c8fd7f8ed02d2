#pragma once

#include <string>
#include <string_view>

#include "lib/base/dtype.h"
#include "lib/base/shape.h"

namespace shardtool::format::dcp {

/// Bytes around the data of one tensor in a .distcp file. Together with the data they are what
/// torch.save writes: a zip of stored records (torch/csrc/.../serialization, PyTorch 2.13).
///
/// The checksum of the data's record is 0: PyTorch does not compare it, and writes no real one
/// itself after torch.serialization.set_crc32_options(False). The other records have theirs.
struct BlobFrame {
  std::string head;
  std::string tail;
};

/// Returns the frame of a blob that begins at `begin` in its file. The data then lies at `residue`
/// modulo `alignment`, at most 4096; the head is padded for that. Throws kUnsupported for a dtype
/// that PyTorch lacks. `name` is for messages.
BlobFrame blob_frame(std::string_view name, Dtype dtype, const Shape& shape, i64 begin,
                     i64 alignment, i64 residue);

}  // namespace shardtool::format::dcp
