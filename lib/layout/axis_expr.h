#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "lib/index/axis_map.h"
#include "lib/mesh/axis_ref.h"

namespace shardtool::layout {

using mesh::Over;

/// Rule that distributes n units over N parts. Frameworks disagree, so the rule is always explicit:
///   exact      every part n / N; an error when N does not divide n
///   balanced   the first n mod N parts get one more (numpy.array_split, MAX)
///   middle     one more for the n mod N parts before the last one (pipeline stages of vLLM:
///              get_pp_indices of vllm/distributed/utils.py)
///   ceil       parts of ceil(n / N), the tail shorter or empty (torch.chunk, DTensor)
///   padded(m)  n is rounded up to the least common multiple of m and N, then exact; the new
///              indices are padding at the end of the global axis (Haliax rounding, vLLM
///              vocabulary)
struct SplitRule {
  enum class Kind { kExact, kBalanced, kMiddle, kCeil, kPadded };
  Kind kind = Kind::kBalanced;
  i64 multiple = 1;  ///< m of padded(m)

  bool operator==(const SplitRule&) const = default;
};

inline constexpr SplitRule kExact{SplitRule::Kind::kExact, 1};
inline constexpr SplitRule kBalanced{SplitRule::Kind::kBalanced, 1};
inline constexpr SplitRule kMiddle{SplitRule::Kind::kMiddle, 1};
inline constexpr SplitRule kCeil{SplitRule::Kind::kCeil, 1};
constexpr SplitRule padded(i64 multiple) {
  return {SplitRule::Kind::kPadded, multiple};
}

/// Interval [begin, end) of n units in part `index` of `parts`. For padded(m) the interval is
/// clipped to n; its local extent is `part_extent`. Throws kNotDivisible for exact.
index::Interval part_of(i64 n, i64 parts, i64 index, SplitRule rule);
/// Local extent of a part, padding included.
i64 part_extent(i64 n, i64 parts, i64 index, SplitRule rule);

class AxisExpr;

/// Every device holds the whole axis.
struct Whole {
  i64 n = 0;
};
/// n units in contiguous parts over mesh axes, major to minor.
struct Split {
  i64 n = 0;
  Over over;
  SplitRule rule;
};
/// Explicit cuts: part k is [boundaries[k], boundaries[k + 1]).
struct Cuts {
  std::vector<i64> boundaries;
  Over over;
};
/// Explicit assignment: part k holds the units owned[k], in that order. A unit may have several
/// owners (redundant experts).
struct Owners {
  i64 n = 0;
  std::vector<std::vector<i64>> owned;
  Over over;
};
/// Expression over units of `unit` consecutive indices: heads -> rows.
struct Scale {
  std::shared_ptr<const AxisExpr> of;
  i64 unit = 1;
};
/// Two axes flattened into one, the outer one slowest: the stacked rows of all experts, cut by
/// expert and inside each expert.
struct Product {
  std::shared_ptr<const AxisExpr> outer;
  std::shared_ptr<const AxisExpr> inner;
};
/// Sections of one axis, each cut independently.
struct Concat {
  std::vector<AxisExpr> sections;
};
/// Every local axis of `of` cut again (tensor parallel, then FSDP, on the same axis).
struct Nest {
  std::shared_ptr<const AxisExpr> of;
  Over over;
  SplitRule rule;
};
/// Every local axis enlarged to the largest one (equal-count collectives).
struct Pad {
  std::shared_ptr<const AxisExpr> of;
};

/// Sharding of one tensor axis over a mesh: an expression that evaluates, for every device, to the
/// AxisMap of its part. A closed set of nine nodes; immutable values.
class AxisExpr {
 public:
  using Node = std::variant<Whole, Split, Cuts, Owners, Scale, Product, Concat, Nest, Pad>;

  /// Throws kStrategy for an invalid node (a negative size, decreasing boundaries, owners out of
  /// range, a unit or a padding below 1, no sections).
  AxisExpr(Node node);  // NOLINT(google-explicit-constructor): a node is an expression

  const Node& node() const { return *node_; }
  /// Extent of the global axis.
  i64 size() const;
  /// True if any part is cut (has a non-empty `over`).
  bool is_sharded() const;

 private:
  std::shared_ptr<const Node> node_;
};

AxisExpr whole(i64 n);
AxisExpr split(i64 n, Over over, SplitRule rule = kBalanced);
AxisExpr cuts(std::vector<i64> boundaries, Over over);
AxisExpr owners(i64 n, std::vector<std::vector<i64>> owned, Over over);
AxisExpr scale(AxisExpr of, i64 unit);
/// Equals scale(outer, n) if the inner axis of n is whole.
AxisExpr product(AxisExpr outer, AxisExpr inner);
AxisExpr concat(std::vector<AxisExpr> sections);
/// concat of m equal sections.
AxisExpr repeat(i64 m, const AxisExpr& section);
AxisExpr nest(AxisExpr of, Over over, SplitRule rule = kBalanced);
AxisExpr pad(AxisExpr of);

/// Part of the device with this rank. O(pieces) (Pad: times the mesh size). Throws kUnknownName,
/// kMesh, kNotDivisible; kStrategy when the length of a list does not match the number of parts.
index::AxisMap evaluate(const AxisExpr& expr, const mesh::Mesh& mesh, i64 rank);

/// Every list of mesh axes in the expression, in order of appearance.
std::vector<Over> overs(const AxisExpr& expr);
/// Every mesh axis reference in the expression, once each, in order of appearance.
std::vector<mesh::AxisRef> axes_used(const AxisExpr& expr);

/// Formats as "Scale(Split(32, tp), 128)"; balanced is not printed, equal sections print as
/// Repeat(3, ...).
std::string to_string(const AxisExpr& expr);
std::string to_string(SplitRule rule);

}  // namespace shardtool::layout
