#pragma once

#include "lib/api/transfer/sources/layout_source.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/layouts/engine_layout.h"

namespace shardtool::api {

/// Opens files of ranks in a layout that fuses tensors (layouts::fuses), without a manifest:
///
///     names in the files --> inverse of "store" --> names of the model --> config.json --> shapes
///                                                                                            |
///     files of the ranks  == tensors of every rank, with their parts <-- layout <-- resolve -+
///
/// The names of the files give the mesh. Every rank must have exactly the tensors that the layout
/// makes of these shapes; their parts are then holders of the model's tensors. Of several ways to
/// cut, such as entries of "layouts", the first that fits is taken.
///
/// Throws kUsage if the names do not number ranks, kConfig without a config.json, kUnsupported for
/// a model that the layout cannot express or whose shapes config.json does not say, kCoverage for
/// missing files and tensors, kShapeMismatch for others than the layout makes, kTensorInvalid for a
/// tensor in two files of a rank, and the errors of opening and of mappings.
LogicalCheckpoint open_by_store_rules(const LayoutSource& source,
                                      const layouts::EngineLayout& layout);

}  // namespace shardtool::api
