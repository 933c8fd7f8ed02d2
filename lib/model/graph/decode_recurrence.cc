#include "lib/model/graph/op_decoder.h"

namespace shardtool::model {

void OpDecoder::pool() {
  auto& p = be<Pool>();
  finish({weight("bias",
                 [&p] {
                   return std::vector{p.taps, p.width};
                 }),
          dim("size", p.size), dim("width", p.width), dim("taps", p.taps)});
}

void OpDecoder::convolve() {
  auto& c = be<Convolve>();
  const Dim one = mapping::parse_dim("1");
  finish({weight("weight",
                 [&c, one] {
                   return std::vector{c.features, one, c.taps};
                 }),
          weight(
              "bias", [&c] { return std::vector{c.features}; }, false),
          dim("features", c.features), dim("taps", c.taps)});
}

void OpDecoder::step() {
  auto& s = be<StepSize>();
  finish({weight("bias", [&s] { return std::vector{s.heads}; }), dim("heads", s.heads),
          number("least", s.least), number("most", s.most)});
}

void OpDecoder::decay() {
  auto& d = be<Decay>();
  std::optional<std::vector<Dim>> stored;
  finish({weight("rate",
                 [&] {
                   if (stored) return *stored;
                   return d.states ? std::vector{d.heads, *d.states} : std::vector{d.heads};
                 }),
          {"rate_shape", [&](const JsonValue& v) { stored = decode_dims(v); }},
          dim("heads", d.heads),
          optional_dim("states", d.states),
          optional_dim("steps", d.steps),
          {"least", [&](const JsonValue& v) { d.least = decode_number(v, context_.numbers); }}});
  if (d.states && d.steps) value_.refuse("a decay with \"states\" or with \"steps\"");
}

void OpDecoder::fade() {
  auto& f = be<Fade>();
  const Dim one = mapping::parse_dim("1");
  finish({weight("rate",
                 [&f, one] {
                   return std::vector{f.heads, one, one};
                 }),
          dim("heads", f.heads)});
}

void OpDecoder::recurrence() {
  auto& r = be<Recurrence>();
  using Rule = kernels::RecurrenceRule;
  finish({{"rule",
           [&r](const JsonValue& v) {
             r.rule = v.one_of<Rule>({{"add", Rule::kAdd}, {"delta", Rule::kDelta}});
           },
           true},
          weight(
              "skip", [&r] { return std::vector{r.heads}; }, false),
          dim("heads", r.heads),
          dim("key_heads", r.key_heads),
          dim("key_dim", r.key_dim),
          dim("value_dim", r.value_dim),
          optional_dim("scale_of", r.scale_of),
          optional_dim("decay_dim", r.decay_dim)});
}

}  // namespace shardtool::model
