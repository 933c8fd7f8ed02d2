#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardtool::family {

/// One model family: the file lib/family/<name>.json, which is compiled in. It is the only
/// description of a model: its tensors and how they are cut, its sizes, and the ops that it
/// computes. lib/family/README.md describes the keys. A family without ops can be cut and not run;
/// one without tensors (a vision encoder, a variant of another family) has ops alone.
struct Family {
  /// Recognises a checkpoint: conditions on config.json and on tensor names.
  struct When {
    std::vector<std::string> architectures;
    std::vector<std::string> model_types;
    std::vector<std::string> tensors_present;  ///< globs; each must match a tensor
    /// A path in config.json, and the values that it may have as JSON text ("null" where absent).
    std::vector<std::pair<std::string, std::vector<std::string>>> config;
  };

  std::string_view name;
  std::string_view text;
  std::string description;
  std::string computes;                      ///< the graph in words; empty: the description
  std::optional<When> when;                  ///< nullopt: the family has no mapping
  bool has_ops = false;                      ///< the family has a graph
  std::vector<std::string> op_model_types;   ///< config.model_type values that the graph computes
  std::vector<std::string> extends_tensors;  ///< families whose tensors this one adds to
  std::vector<std::string> extends_ops;      ///< families whose ops this one adds to
};

/// All families, sorted by name. Decoded once.
std::span<const Family> families();
/// The family of that name, or nullptr.
const Family* find_family(std::string_view name);

}  // namespace shardtool::family
