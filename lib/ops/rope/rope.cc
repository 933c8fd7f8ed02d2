#include "lib/ops/rope/rope.h"

#include "lib/ops/decoder.h"
#include "lib/ops/walk.h"
#include "lib/ops/widths.h"

namespace shardtool::ops {
namespace {

RotatePatches rotate_patches(OpDecoder& in, const JsonValue& value) {
  RotatePatches rotate;
  using Frequencies = RotatePatches::Frequencies;
  value.object({patches_field(in, rotate.patches),
                {"frequencies",
                 [&rotate](const JsonValue& v) {
                   rotate.frequencies =
                       v.one_of<Frequencies>({{"of_half", Frequencies::kOfHalf},
                                              {"every_second", Frequencies::kEverySecond}});
                 },
                 true},
                in.flag("columns_first", rotate.columns_first),
                in.number("first", rotate.first)});
  return rotate;
}

}  // namespace

void decode(Rope& op, OpDecoder& in) {
  in.finish({{"style",
              [&op](const JsonValue& v) {
                op.style = v.one_of<Rope::Style>(
                    {{"half", Rope::Style::kHalf},
                     {"interleaved", Rope::Style::kInterleaved},
                     {"deinterleaved_half", Rope::Style::kDeinterleavedHalf}});
              },
              true},
             in.dim("head", op.head),
             in.number("fraction", op.fraction),
             in.optional_dim("first", op.first),
             in.flag("at_end", op.at_end),
             in.flag("back", op.back),
             in.optional_dim("of_first", op.of_first),
             in.number("theta", op.theta, true),
             {"scaling", [&op](const JsonValue& v) { op.scaling = decode_paths(v); }},
             {"yarn_factor",
              [&](const JsonValue& v) { op.yarn_factor = decode_number(v, in.context().numbers); }},
             {"by_patch", [&](const JsonValue& v) { op.patches = rotate_patches(in, v); }}});
  if (op.patches && in.value().has("scaling"))
    in.value().refuse("a rotation by patches without a scaling");
}

void check(const Rope& op, const Widths& widths) {
  widths.in_units(0, widths.size(op.head));
}

std::vector<plan::OpRow> rules(const Rope& /*op*/, const RuleSite& site) {
  return site.unary(plan::nonlinear_rows({2, 2}));
}

Value place(const Rope& /*op*/, Walk& walk, const BoundOp& bound) {
  return walk.nonlinear(bound);
}

}  // namespace shardtool::ops
