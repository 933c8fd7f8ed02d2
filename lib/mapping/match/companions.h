#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/layout/bundle.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/match/compiled_patterns.h"

namespace shardtool::mapping {

/// A companion whose pattern matched a tensor's name, and the name of its leader.
struct CompanionMatch {
  size_t companion = 0;  ///< index into Companions::all
  std::string leader;
};

/// A companion with its place. Points into the mapping, which must outlive it.
struct PlacedCompanion {
  const Document* document = nullptr;
  const CompanionSpec* spec = nullptr;
  std::string label;  ///< "companions/0" or "preset:x#companions/0"
};

/// Evaluates sizes of the mapping, and the config for them (null: none).
struct CompanionSizes {
  std::function<i64(const SizeExpression& size)> evaluate;
  const ModelConfig* config = nullptr;
};

/// The "companions" of all documents, nearest first. Points into the mapping, which must outlive
/// it.
class Companions {
 public:
  explicit Companions(const Mapping& mapping);

  std::span<const PlacedCompanion> all() const { return all_; }
  /// Returns the companions whose patterns match the tensor, nearest first. A leader's name is "of"
  /// with the texts of the tensor's wildcards.
  std::vector<CompanionMatch> find(const TensorSpec& tensor);
  /// Describes a tensor of this shape as a member of the bundle of its leader. Throws
  /// kShapeMismatch if the shape has none of the member's forms; kSizeExpression and kConfig if a
  /// block cannot be computed.
  layout::BundleMember member(size_t companion, const Shape& leader, const Shape& shape,
                              const CompanionSizes& sizes) const;
  /// Returns the shapes that a member's forms allow beside a leader of this shape, in the order of
  /// the forms. Leaves out forms that do not say every extent or whose sizes config.json lacks.
  std::vector<Shape> shapes(size_t companion, const Shape& leader,
                            const CompanionSizes& sizes) const;

 private:
  std::vector<PlacedCompanion> all_;
  /// Returns the leader's name for a companion's name, as a template for all names of the same
  /// form. Returns nullopt if the form does not determine it.
  std::optional<NameTemplate> leader_template(size_t companion, const NumberedName& name) const;
  std::string leader(size_t companion, const std::string& name);

  const GlobSet& globs_;  ///< "is", by companion
  NameMatcher names_;
  /// By companion and form of the name.
  std::map<size_t, ByForm<std::optional<NameTemplate>>> leaders_;
};

/// Returns the number of the leader's indices per stored index of a member's axis. A config value
/// of -1 means all, that is `extent`. Throws what evaluating the size throws.
i64 granularity_of(const MemberAxisSpec& axis, i64 extent, const CompanionSizes& sizes);

}  // namespace shardtool::mapping
