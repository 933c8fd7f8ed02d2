#include "lib/ops/patches/patches.h"

#include "lib/ops/decoder.h"
#include "lib/ops/walk.h"
#include "lib/ops/widths.h"

namespace shardtool::ops {

JsonValue::Field patches_field(OpDecoder& in, Patches& into, bool required) {
  return {"patches",
          [&in, &into](const JsonValue& v) {
            v.object({{"order",
                       [&into](const JsonValue& order) {
                         into.order =
                             order.one_of<Patches::Order>({{"rows", Patches::Order::kRows},
                                                           {"squares", Patches::Order::kSquares}});
                       },
                       true},
                      in.dim("count", into.count),
                      in.flag("has_class", into.has_class)});
          },
          required};
}

void decode(Merge& op, OpDecoder& in) {
  in.finish({patches_field(in, op.patches),
             {"form",
              [&op](const JsonValue& v) {
                op.form = v.one_of<Merge::Form>({{"beside", Merge::Form::kBeside},
                                                 {"within", Merge::Form::kWithin},
                                                 {"mean", Merge::Form::kMean}});
              },
              true}});
}

std::vector<plan::OpRow> rules(const Merge& /*op*/, const RuleSite& site) {
  return site.whole();
}

/// Every device has all features: an image has few positions, and a merged position many features.
Value place(const Merge& op, Walk& walk, const BoundOp& bound) {
  Value& x = walk.in(bound, 0);
  walk.make_whole(x);
  if (op.form == Merge::Form::kMean) return x;
  return walk.whole(walk.size(op.patches.count) * x.width);
}

void decode(Insert& op, OpDecoder& in) {
  in.finish({patches_field(in, op.patches)});
}

std::vector<plan::OpRow> rules(const Insert& /*op*/, const RuleSite& site) {
  return site.whole();
}

Value place(const Insert& /*op*/, Walk& walk, const BoundOp& bound) {
  walk.make_whole(walk.in(bound, 0));
  walk.make_whole(walk.in(bound, 1));
  return walk.whole(walk.in(bound, 0).width);
}

void decode(ClassToken& op, OpDecoder& in) {
  std::optional<std::vector<Dim>> stored;
  in.finish({in.weight("weight", [&] { return stored.value_or(std::vector{op.size}); }),
             {"weight_shape", [&](const JsonValue& v) { stored = decode_dims(v); }},
             in.dim("size", op.size)});
}

void check(const ClassToken& op, const Widths& widths) {
  widths.exactly(0, widths.size(op.size));
}

std::vector<plan::OpRow> rules(const ClassToken& /*op*/, const RuleSite& site) {
  return site.whole();
}

Value place(const ClassToken& op, Walk& walk, const BoundOp& bound) {
  walk.refuse_cut(bound, "class token");
  walk.make_whole(walk.in(bound, 0));
  return walk.whole(walk.size(op.size));
}

}  // namespace shardtool::ops
