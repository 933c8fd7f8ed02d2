#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::index {

/// [begin, end), in elements of one axis.
struct Interval {
  i64 begin = 0;
  i64 end = 0;

  i64 size() const { return end - begin; }
  bool operator==(const Interval&) const = default;
};

/// Translation from local [local, local + size) to global [global, global + size).
struct Piece {
  i64 local = 0;
  i64 global = 0;
  i64 size = 0;

  i64 local_end() const { return local + size; }
  i64 global_end() const { return global + size; }
  bool operator==(const Piece&) const = default;
};

/// Map from the local indices of one holder's axis to the global axis: a partial injection that is
/// piecewise a translation.
///
///     local   |--A--|--B--|..pad..|          pieces {0, 2, 2} {2, 8, 2}, local_size 6
///     global  .  .|--A--|.  .  .|--B--|      global_size 10
///
/// I1  pieces are sorted by local and their local intervals are disjoint
/// I2  their global intervals are disjoint (the map is injective)
/// I3  no piece is empty
/// I4  no two consecutive pieces are adjacent on both sides, so equality is structural
/// I5  all pieces are inside both extents
///
/// Padding is the set of local indices that have no image.
class AxisMap {
 public:
  /// Empty map of an empty axis.
  AxisMap() = default;
  /// Establishes I1 to I5: sorts, drops empty pieces, joins adjacent ones. Throws kInternal when
  /// pieces overlap or leave an extent; use `make` for maps from files.
  AxisMap(i64 local_size, i64 global_size, std::vector<Piece> pieces);
  /// Like the constructor, but returns nullopt instead of throwing. For maps from files.
  static std::optional<AxisMap> make(i64 local_size, i64 global_size, std::vector<Piece> pieces);
  /// Maps [0, n) onto itself.
  static AxisMap identity(i64 n);
  /// Map of a holder of [begin, end) of a global axis of n: one piece, or no piece if empty.
  static AxisMap slice(i64 n, Interval interval);

  i64 local_size() const { return local_size_; }
  i64 global_size() const { return global_size_; }
  std::span<const Piece> pieces() const { return pieces_; }
  /// Number of local indices that have an image.
  i64 image_size() const;
  /// Returns the global index of a local one, or nullopt for padding. Requires 0 <= local <
  /// local_size.
  std::optional<i64> operator()(i64 local) const;
  bool is_identity() const;

  bool operator==(const AxisMap&) const = default;

 private:
  i64 local_size_ = 0;
  i64 global_size_ = 0;
  std::vector<Piece> pieces_;
};

/// Swaps local and global: inverse(a)(g) = l where a(l) = g. O(p log p).
AxisMap inverse(const AxisMap& a);

/// Composes outer after inner: result(l) = outer(inner(l)), undefined where either is. Requires
/// inner.global_size() == outer.local_size() (kInternal). O((p + q) log).
AxisMap compose(const AxisMap& outer, const AxisMap& inner);

/// Concatenates sections on both sides: section k starts at the sum of the sizes before it. Throws
/// kLimit when a size overflows.
AxisMap concat(std::span<const AxisMap> sections);

/// Expands each index into k consecutive ones: result(l * k + j) = a(l) * k + j. Requires k > 0;
/// throws kLimit when a size overflows.
AxisMap scale(const AxisMap& a, i64 k);

/// Flattens two axes into one on both sides, the outer one slowest:
///     result(o * inner.local_size() + i) = outer(o) * inner.global_size() + inner(i)
/// scale(a, k) = product(a, identity(k)). Throws kLimit when a size overflows.
/// O(outer's image * inner's pieces).
AxisMap product(const AxisMap& outer, const AxisMap& inner);

/// Merges blocks of b indices into one each, including a last partial block: the inverse of
/// scale(a, b). Nullopt when a piece begins or ends inside a block (unless it ends at the end of
/// the axis).
std::optional<AxisMap> coarsen(const AxisMap& a, i64 b);

/// Global index of the first cut inside a block of b; nullopt if `coarsen` succeeds.
std::optional<i64> first_cut_inside_block(const AxisMap& a, i64 b);

/// Blocks of b in which `a` has indices, each once, in the order in which `a` reaches them: the
/// `coarsen` of an axis whose cuts may fall inside blocks. Requires a without padding (kInternal).
AxisMap touched(const AxisMap& a, i64 b);

/// Keeps the indices that equal `offset` modulo k: result(l) = a(l) div k where a(l) mod k ==
/// offset, else undefined. Requires 0 <= offset < k. O(global size).
AxisMap every_kth(const AxisMap& a, i64 k, i64 offset);

/// First index of the global interval that the axis holds in order and without padding:
/// a(l) = begin + l for every local l. Returns global_size() for a holder without indices, and
/// nullopt for maps that are not one such interval.
std::optional<i64> interval_begin(const AxisMap& a);

/// Enlarges the local extent to n >= local_size; the new indices are padding.
AxisMap pad(const AxisMap& a, i64 n);

/// Formats as "[0, 192) [640, 832) pad 2", in local order, with another word for padding if it is
/// given; "nothing" for an empty map.
std::string to_string(const AxisMap& a, std::string_view padding = "pad");

}  // namespace shardtool::index
