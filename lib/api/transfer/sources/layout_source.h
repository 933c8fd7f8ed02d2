#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/format/typed_location.h"

namespace shardtool::api {

/// Files of ranks that another tool wrote in the form of an engine's layout.
struct LayoutSource {
  std::vector<std::string> locations;
  std::string layout;  ///< label of the layout
  std::string config;  ///< path of the model's config.json; empty: the one beside the files
};

/// Takes a location apart, whose format may also be one of layouts::read_layout_names(). Throws the
/// errors of format::parse_location.
format::TypedLocation parse_source(const std::string& location);

/// Returns the files that every location names with the same layout in front, LAYOUT:PLACE; nullopt
/// if none has one. Throws kUsage for different ones, and the errors of parse_source.
std::optional<LayoutSource> named_layout(const std::vector<std::string>& locations,
                                         const std::string& config);

/// Returns the advice (layouts::advice_to_name) to name the layout in whose files the tensors of an
/// opened checkpoint may be; empty if there is none, for one with a manifest, and for one that was
/// opened by such a name.
std::string layout_advice(const LogicalCheckpoint& opened);

/// Opens files without a manifest: the layout's table gives every tensor its name in the checkpoint
/// and every rank its part. The whole shapes are those that the layout cuts into the parts; the
/// file names give the number of ranks. A layout with rules of reading takes a checkpoint in chunks
/// (unfused_source.h), and one whose rules of storing fuse tensors is read by their inverse
/// (fused_source.h). The layout is one of layouts::read_layout_names(), and the format of the
/// parts becomes its label. Throws kUsage if the files have a manifest or their names do not number
/// ranks, kCoverage for missing files or parts, kShapeMismatch for parts that the layout does not
/// make, and the errors of opening and of mappings.
LogicalCheckpoint open_in_layout(const LayoutSource& source);

}  // namespace shardtool::api
