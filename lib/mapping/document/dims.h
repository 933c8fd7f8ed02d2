#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/checked.h"
#include "lib/base/error.h"

namespace shardtool::mapping {

/// A logical axis, or a literal number when the name is empty.
struct Factor {
  std::string axis;
  i64 literal = 1;
};

/// a*b*c: axes folded into one, the first slowest; each may be cut.
struct FoldedAxes {
  std::vector<Factor> factors;  ///< not empty
};

/// One axis of a tensor in terms of logical axes.
///
///     dim := product ('+' product)*
///     product := factor ('*' factor)*
///     factor := name | digits
struct Dim {
  std::string text;                  ///< as written; empty for null
  std::vector<FoldedAxes> sections;  ///< side by side; empty for null: any extent, not cut
  Place place;
};

/// Calls `visit` with every factor of every section, in order.
template <class Visit>
void for_each_factor(const Dim& dim, Visit visit) {
  for (const FoldedAxes& section : dim.sections) {
    for (const Factor& factor : section.factors) visit(factor);
  }
}

/// Parses a dim. Throws kMappingSchema.
Dim parse_dim(std::string_view text);

/// Returns the declared size of an axis, or nullopt if its size is to be inferred.
using DeclaredSize = std::function<std::optional<i64>(const std::string& axis)>;

/// Returns the axis of `dim` without a declared size, and the size for which the sections add up to
/// `extent`; nullopt if all sizes are declared. Throws kShapeMismatch if the sections cannot add up
/// to `extent`, if two axes lack a size, or if such an axis is multiplied by itself.
std::optional<std::pair<std::string, i64>> infer_size(const Dim& dim, const DeclaredSize& declared,
                                                      i64 extent);

/// Returns the extent of a dim whose axes all have a size. Throws kShapeMismatch on overflow.
i64 extent_of(const Dim& dim, const DeclaredSize& size);

/// Returns the product of the factors from `first` on. Throws kShapeMismatch on overflow.
i64 product_of(const FoldedAxes& product, size_t first, const DeclaredSize& size);

}  // namespace shardtool::mapping
