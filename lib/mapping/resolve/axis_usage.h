#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/mapping/mapping.h"
#include "lib/mapping/match/rule_matcher.h"
#include "lib/mapping/resolve/axis_table.h"
#include "lib/mapping/resolve/resolution.h"

namespace shardtool::mapping {

/// Returns a warning for each axis that a user's document (not a preset) defines, but no rule, size
/// or group names. Haliax ignores such entries; here they are usually typos.
std::vector<std::string> unused_axes(const Mapping& mapping);

/// Returns the axes of the mesh with several devices along which no tensor is cut.
std::vector<mesh::MeshAxis> uncut_axes(const Resolution& resolution);

/// Resolves the mapping with one more setting (with_settings); nullopt if it cannot.
using ResolvedWith =
    std::function<std::optional<Resolution>(const std::string& path, const std::string& value)>;

/// Returns a warning for each axis of the mesh along which no tensor is cut, unless the mapping
/// itself has the mesh: there it means replicas. A mesh axis from the command line may be misspelt,
/// and then every device would get all tensors. For an axis of role fsdp it adds the setting that
/// cuts a logical axis over it, if there is one with which the mapping resolves.
std::vector<std::string> idle_mesh_axes(const Mapping& mapping, const Resolution& resolution,
                                        const ResolvedWith& resolved_with);

/// Returns a warning for each axis of inner numbers in names, such as the experts in a layer, whose
/// size is in config.json but which no tensor has: the config is that of another model. Outermost
/// numbers are not checked, because a checkpoint may lack whole kinds of layers, such as the
/// decoder.
std::vector<std::string> axes_without_tensors(const RuleMatcher& rules, AxisTable& axes);

}  // namespace shardtool::mapping
