#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/mapping/document/config.h"
#include "lib/mapping/document/glob_matcher.h"
#include "lib/mapping/mapping.h"

namespace shardtool::mapping {

/// Names that tensors without a rule of "store" may keep in the files: "unstored" of all documents.
/// The mapping must outlive it.
class KeptNames {
 public:
  explicit KeptNames(const Mapping& mapping);

  /// Returns a document that does not keep the name, or null.
  const Document* refused_by(std::string_view name) const;

 private:
  struct Entry {
    const Document* document = nullptr;
    std::vector<GlobMatcher> names;
  };

  std::vector<Entry> entries_;
};

/// Converts names in the files of a layout to the checkpoint's own: the inverse of the rules in
/// "store" that rename. The mapping and the config must outlive it.
class StoredNames {
 public:
  StoredNames(const Mapping& mapping, const ModelConfig* config);

  /// Returns the checkpoint's name. A name that no rule gives is the checkpoint's own; throws
  /// kNoRule if "unstored" of a document does not keep it. Throws kUnsupported for a tensor that
  /// holds several of the checkpoint's, and returns nullopt for a constant.
  std::optional<std::string> checkpoint_name(const std::string& stored) const;

 private:
  struct Entry {
    const StoreRule* rule = nullptr;
    GlobMatcher name;
  };

  std::vector<Entry> rules_;  ///< nearest first
  KeptNames kept_;
};

}  // namespace shardtool::mapping
