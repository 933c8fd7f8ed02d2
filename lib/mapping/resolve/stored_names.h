#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/mapping/document/config.h"
#include "lib/mapping/document/glob_matcher.h"
#include "lib/mapping/mapping.h"

namespace shardtool::mapping {

/// Converts names in the files of a layout to the checkpoint's own: the inverse of the rules in
/// "store" that rename. The mapping and the config must outlive it.
class StoredNames {
 public:
  StoredNames(const Mapping& mapping, const ModelConfig* config);

  /// Returns the checkpoint's name. A name that no rule gives is the checkpoint's own, unless the
  /// mapping says "unstored": "error"; then throws kNoRule. Throws kUnsupported for a tensor that
  /// holds several of the checkpoint's, and returns nullopt for a constant.
  std::optional<std::string> checkpoint_name(const std::string& stored) const;

 private:
  struct Entry {
    const StoreRule* rule = nullptr;
    GlobMatcher name;
  };

  std::vector<Entry> rules_;  ///< nearest first
  bool requires_rule_ = false;
};

}  // namespace shardtool::mapping
