#pragma once

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

/// Tensors of the checkpoint that one in the files may hold, in the order of their bytes.
struct StoredOrigin {
  std::vector<std::string> names;
  bool is_stack = false;  ///< along the stored tensor's first axis
};

/// Converts names in the files of a layout to the checkpoint's own: the inverse of the rules in
/// "store". The mapping and the config must outlive it.
class StoredNames {
 public:
  StoredNames(const Mapping& mapping, const ModelConfig* config);

  /// Returns the origins that rules give a name, nearest rule first, then the name itself unless
  /// "unstored" of a document does not keep it; none for a constant. Stacks have the first
  /// `stacked` indices. Throws kNoRule for a name without origin.
  std::vector<StoredOrigin> origins(const std::string& stored, i64 stacked) const;

 private:
  struct Entry {
    const StoreRule* rule = nullptr;
    GlobMatcher name;
  };

  std::vector<Entry> rules_;  ///< nearest first
  KeptNames kept_;
};

}  // namespace shardtool::mapping
