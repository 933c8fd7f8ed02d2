#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardtool/base/tensor_spec.h"
#include "shardtool/layout/layout.h"
#include "shardtool/mapping/config.h"
#include "shardtool/mapping/mapping.h"
#include "shardtool/mapping/rule_matcher.h"

namespace re2 {
class RE2;
}

namespace shardtool::mapping {

/// A companion that a tensor's name matched, and the name of the tensor that it follows.
struct CompanionMatch {
  size_t companion = 0;  ///< index into Companions::all
  std::string leader;
};

/// A companion and where it stands. Points into the mapping, which must outlive it.
struct PlacedCompanion {
  const Document* document = nullptr;
  const CompanionSpec* spec = nullptr;
  std::string label;  ///< "companions/0" or "preset:x#companions/0"
};

/// The "companions" of all documents, nearest first.
class Companions {
 public:
  explicit Companions(const Mapping& mapping);
  ~Companions();

  std::span<const PlacedCompanion> all() const { return all_; }
  /// What the name could be a companion of, nearest first: its wildcards, put into "of".
  std::vector<CompanionMatch> find(std::string_view name);
  /// The layout of a companion of this shape. Throws what member_layout throws, kSizeExpression and
  /// kConfig when its block cannot be read from the config.
  layout::Layout layout(size_t companion, const layout::Layout& leader, const Shape& shape,
                        const ModelConfig* config) const;

 private:
  std::vector<PlacedCompanion> all_;
  std::vector<std::unique_ptr<re2::RE2>> groups_;  ///< "is" with every wildcard a group
  PatternSet set_;
  std::vector<int> matched_;  ///< reused by find
};

}  // namespace shardtool::mapping
