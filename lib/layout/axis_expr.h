#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "lib/index/axis_map.h"
#include "lib/mesh/axis_ref.h"

namespace shardtool::layout {

using mesh::Over;

/// How n units are dealt out to N parts. The field disagrees, so the rule is always explicit:
///   exact      every part n / N; an error when N does not divide n
///   balanced   the first n mod N parts get one more (numpy.array_split, MAX)
///   ceil       parts of ceil(n / N), the tail shorter or empty (torch.chunk, DTensor)
///   padded(m)  n is rounded up to the least common multiple of m and N, then exact; the new
///              indices are padding at the end of the global axis (Haliax rounding, vLLM
///              vocabulary)
struct SplitRule {
  enum class Kind { kExact, kBalanced, kCeil, kPadded };
  Kind kind = Kind::kBalanced;
  i64 multiple = 1;  ///< m of padded(m)

  bool operator==(const SplitRule&) const = default;
};

inline constexpr SplitRule kExact{SplitRule::Kind::kExact, 1};
inline constexpr SplitRule kBalanced{SplitRule::Kind::kBalanced, 1};
inline constexpr SplitRule kCeil{SplitRule::Kind::kCeil, 1};
constexpr SplitRule padded(i64 multiple) {
  return {SplitRule::Kind::kPadded, multiple};
}

/// The part [begin, end) of n units that part `index` of `parts` gets. For padded(m) the interval
/// is clipped to n; its local extent is `part_extent`. Throws kNotDivisible for exact.
index::Interval part_of(i64 n, i64 parts, i64 index, SplitRule rule);
/// The local extent of a part, padding included.
i64 part_extent(i64 n, i64 parts, i64 index, SplitRule rule);

class AxisExpr;

/// Everybody has everything.
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
/// The expression counts units of `unit` consecutive indices: heads -> rows.
struct Scale {
  std::shared_ptr<const AxisExpr> of;
  i64 unit = 1;
};
/// Two axes folded into one, the outer one slowest: the rows of all experts below each other, cut
/// by expert and inside each expert.
struct Product {
  std::shared_ptr<const AxisExpr> outer;
  std::shared_ptr<const AxisExpr> inner;
};
/// Sections of one axis, each cut by itself.
struct Concat {
  std::vector<AxisExpr> sections;
};
/// Every local axis of `of` is cut again (tensor parallel, then FSDP, on the same axis).
struct Nest {
  std::shared_ptr<const AxisExpr> of;
  Over over;
  SplitRule rule;
};
/// Every local axis enlarged to the largest one (equal-count collectives).
struct Pad {
  std::shared_ptr<const AxisExpr> of;
};

/// How one axis of a tensor is laid over a mesh: an expression that evaluates, for every device, to
/// the AxisMap of what it holds. A closed set of nine nodes; immutable values.
class AxisExpr {
 public:
  using Node = std::variant<Whole, Split, Cuts, Owners, Scale, Product, Concat, Nest, Pad>;

  /// Throws kStrategy when the node makes no sense by itself (a negative size, boundaries that
  /// fall, owners out of range, a unit or a padding below 1, no sections).
  AxisExpr(Node node);  // NOLINT(google-explicit-constructor): a node is an expression

  const Node& node() const { return *node_; }
  /// The extent of the global axis.
  i64 size() const;
  /// Whether any part of it is cut (has a non-empty `over`).
  bool is_sharded() const;

 private:
  std::shared_ptr<const Node> node_;
};

AxisExpr whole(i64 n);
AxisExpr split(i64 n, Over over, SplitRule rule = kBalanced);
AxisExpr cuts(std::vector<i64> boundaries, Over over);
AxisExpr owners(i64 n, std::vector<std::vector<i64>> owned, Over over);
AxisExpr scale(AxisExpr of, i64 unit);
/// scale(outer, n) where the inner axis of n is whole.
AxisExpr product(AxisExpr outer, AxisExpr inner);
AxisExpr concat(std::vector<AxisExpr> sections);
/// concat of m equal sections.
AxisExpr repeat(i64 m, const AxisExpr& section);
AxisExpr nest(AxisExpr of, Over over, SplitRule rule = kBalanced);
AxisExpr pad(AxisExpr of);

/// What the device with this rank holds. O(pieces) (Pad: times the mesh size).
/// Throws kUnknownName, kMesh, kNotDivisible; kStrategy when a list has another length than the
/// number of parts.
index::AxisMap evaluate(const AxisExpr& expr, const mesh::Mesh& mesh, i64 rank);

/// Every list of mesh axes in it, in order of appearance.
std::vector<Over> overs(const AxisExpr& expr);
/// Every mesh axis reference it uses, once each, in order of appearance.
std::vector<mesh::AxisRef> axes_used(const AxisExpr& expr);

/// "Scale(Split(32, tp), 128)"; balanced is not printed, equal sections print as Repeat(3, ...).
std::string to_string(const AxisExpr& expr);
std::string to_string(SplitRule rule);

}  // namespace shardtool::layout
