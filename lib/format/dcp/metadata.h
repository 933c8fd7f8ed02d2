#pragma once

#include <string>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/base/shape.h"

namespace shardtool::format::dcp {

/// Box of a tensor in a blob of a data file, as `.metadata` records it.
struct Chunk {
  Shape begin;  ///< global index at which it begins on every axis
  Shape shape;
  size_t file = 0;  ///< index into Metadata::files
  i64 offset = 0;   ///< of the blob
  i64 length = 0;
};

struct ChunkedEntry {
  std::string name;
  Dtype dtype = Dtype::kF32;
  Shape shape;
  std::vector<Chunk> chunks;
};

/// Content of `.metadata` (torch/distributed/checkpoint/metadata.py, PyTorch 2.13).
///
/// M1 every chunk lies inside its tensor, in a file of the folder
/// M2 names are unique
struct Metadata {
  std::vector<std::string> files;     ///< relative to the checkpoint's folder, sorted
  std::vector<ChunkedEntry> tensors;  ///< by name
  std::vector<std::string> objects;   ///< names of entries that are no tensors, sorted
};

/// Decodes the text of `.metadata`; nothing in it is executed. Memory is proportional to the text,
/// although values of a pickle can be shared. `path` is for messages. Throws
/// kMalformed for another pickle or contradictions, kUnsupported for dtypes, layouts and stored
/// forms that are not read, and the errors of torch::unpickle.
Metadata parse_metadata(std::string text, const std::string& path);

}  // namespace shardtool::format::dcp
