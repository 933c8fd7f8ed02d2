#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/layout/bundle.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/resolve/rule_matcher.h"

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

/// The value of a size in the mapping, and the config that sizes are read from (null: none).
struct CompanionSizes {
  std::function<i64(const SizeExpression& size)> evaluate;
  const ModelConfig* config = nullptr;
};

/// The "companions" of all documents, nearest first.
class Companions {
 public:
  explicit Companions(const Mapping& mapping);
  ~Companions();

  std::span<const PlacedCompanion> all() const { return all_; }
  /// What the tensor could be a companion of, nearest first: its wildcards, put into "of".
  std::vector<CompanionMatch> find(const TensorSpec& tensor);
  /// A tensor of this shape as a member of the bundle that a leader of that shape leads. Throws
  /// kShapeMismatch when the shape is no form of the member, kSizeExpression and kConfig when a
  /// block cannot be computed.
  layout::BundleMember member(size_t companion, const Shape& leader, const Shape& shape,
                              const CompanionSizes& sizes) const;

 private:
  std::vector<PlacedCompanion> all_;
  /// The name of the leader that a companion's name calls for, as a template where names of the
  /// same form are taken apart alike.
  std::optional<NameTemplate> leader_template(size_t companion, const NumberedName& name) const;
  std::string leader(size_t companion, const std::string& name);

  std::vector<std::unique_ptr<re2::RE2>> groups_;  ///< "is" with every wildcard a group
  PatternSet set_;
  std::map<size_t, ByForm<std::optional<NameTemplate>>> leaders_;  ///< by companion
};

/// How many of the leader's indices one stored index of a member's axis stands for. A config value
/// of -1 means all of them: `extent`. Throws what evaluating the size throws.
i64 granularity_of(const MemberAxisSpec& axis, i64 extent, const CompanionSizes& sizes);

}  // namespace shardtool::mapping
