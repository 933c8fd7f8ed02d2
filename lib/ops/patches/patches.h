#pragma once

#include <string_view>

#include "lib/mapping/document/json_value.h"
#include "lib/ops/fwd.h"
#include "lib/ops/schema.h"

/// Ops on images, whose patches are positions of an encoder.
namespace shardtool::ops {

/// The order of an image's patches, which are positions: row by row of a grid, or one square of
/// `count` patches after another. The number of patches determines the grid's width (PatchGrid).
struct Patches {
  enum class Order { kRows, kSquares };
  Order order = Order::kRows;
  Dim count;               ///< patches per square: 4, 16
  bool has_class = false;  ///< the last position is a class token
};
/// The field "patches".
mapping::JsonValue::Field patches_field(OpDecoder& in, Patches& into, bool required = true);

/// Merges the patches of every square into one position: concatenates their features patch by patch
/// or feature by feature (pixel unshuffle), or takes their mean. The number of positions stays the
/// same: after the last square the first ones repeat.
struct Merge {
  enum class Form { kBeside, kWithin, kMean };
  Patches patches;
  Form form = Form::kBeside;
};
void decode(Merge& op, OpDecoder& in);
std::vector<plan::OpRow> rules(const Merge& op, const RuleSite& site);
Value place(const Merge& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Merge& op, const OpAt<N>& at);

/// Replaces leading positions of the first input, as many as the patches have squares, by those of
/// the second input: image features instead of image tokens.
struct Insert {
  Patches patches;
};
void decode(Insert& op, OpDecoder& in);
std::vector<plan::OpRow> rules(const Insert& op, const RuleSite& site);
Value place(const Insert& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Insert& op, const OpAt<N>& at);

/// Replaces the last position by a stored vector, the class token of a ViT.
struct ClassToken {
  Dim size;
};
void decode(ClassToken& op, OpDecoder& in);
void check(const ClassToken& op, const Widths& widths);
std::vector<plan::OpRow> rules(const ClassToken& op, const RuleSite& site);
Value place(const ClassToken& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const ClassToken& op, const OpAt<N>& at);

}  // namespace shardtool::ops
