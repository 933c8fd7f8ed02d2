#pragma once

#include <string>
#include <vector>

#include "lib/api/transfer/sources/logical_checkpoint.h"

namespace shardtool::api {

/// Files of ranks that another tool wrote in the form of an engine's layout.
struct LayoutSource {
  std::vector<std::string> locations;
  std::string layout;  ///< label of the layout
  std::string config;  ///< path of the model's config.json; empty: the one beside the files
};

/// Opens files without a manifest: the layout's table gives every tensor its name in the checkpoint
/// and every rank its part. The whole shapes are those that the layout cuts into the parts; the
/// file names give the number of ranks. A layout with rules of reading takes a checkpoint in chunks
/// (chunk_source.h). Throws kUsage if the files have a manifest or their names
/// do not number ranks, kUnsupported for layouts that store several tensors as one, kCoverage for
/// missing files or parts, kShapeMismatch for parts that the layout does not make, and the errors
/// of opening and of mappings.
LogicalCheckpoint open_in_layout(const LayoutSource& source);

}  // namespace shardtool::api
