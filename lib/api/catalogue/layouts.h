#pragma once

#include <string>
#include <vector>

namespace shardtool::api {

/// Models of a layout that share a table of tensor names.
struct LayoutModelsInfo {
  std::vector<std::string> model_types;
  std::string proof;  ///< the meshes on which the engine's own loader took such files
};

/// A form of files that an engine loads, or that is read.
struct LayoutInfo {
  std::string label;  ///< "vllm@0.32", for --layout if it is written
  std::string description;
  std::vector<std::string> files;  ///< patterns of the files' names
  std::vector<LayoutModelsInfo> models;
  std::vector<std::string> experimental;  ///< written, although no engine has loaded it yet
  std::vector<std::string> refused;       ///< reasons
};

/// Returns the forms of files without tables of names, which are plain and torch, then the layouts
/// of engines, sorted by name; of one name, the newest version first.
std::vector<LayoutInfo> list_layouts();
/// Returns the JSON text of a form of list_layouts(). Throws kUsage with the known labels.
std::string layout_text(const std::string& label);
/// Returns the values of --layout: plain, and names and labels of the layouts that are written.
std::vector<std::string> written_layouts();
/// Returns those of written_layouts() that are of shards, which merge does not write.
std::vector<std::string> sharded_layouts();
/// Returns the names and labels of the layouts that stand in front of a path only.
std::vector<std::string> read_only_layouts();

}  // namespace shardtool::api
