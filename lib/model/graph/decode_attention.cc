#include "lib/model/graph/op_decoder.h"

namespace shardtool::model {

void OpDecoder::norm() {
  auto& n = be<Norm>();
  const auto size = [&n] { return n.heads ? std::vector{*n.heads, n.size} : std::vector{n.size}; };
  finish({{"kind",
           [&n](const JsonValue& v) {
             n.kind = v.one_of<Norm::Kind>({{"rms", Norm::Kind::kRms},
                                            {"layer", Norm::Kind::kLayer},
                                            {"l2", Norm::Kind::kL2}});
           },
           true},
          weight("weight", size, false),
          weight("bias", size, false),
          dim("size", n.size),
          number("eps", n.eps, true),
          flag("per_head", n.per_head),
          optional_dim("heads", n.heads),
          flag("one_plus_weight", n.one_plus_weight),
          flag("cast_after_weight", n.cast_after_weight)});
  if (n.heads && !n.per_head) value_.refuse("a norm \"per_head\" where it has \"heads\"");
  for (WeightRef& ref : op_.weights) {
    if (ref.names.front().find("<head>") == std::string::npos) continue;
    if (!n.heads) value_.refuse("a norm with \"heads\" where a name has <head>");
    ref.shape = {n.size};
    ref.heads = n.heads;
  }
}

RotatePatches OpDecoder::rotate_patches(const JsonValue& value) {
  RotatePatches rotate;
  using Frequencies = RotatePatches::Frequencies;
  value.object({patches(rotate.patches),
                {"frequencies",
                 [&rotate](const JsonValue& v) {
                   rotate.frequencies =
                       v.one_of<Frequencies>({{"of_half", Frequencies::kOfHalf},
                                              {"every_second", Frequencies::kEverySecond}});
                 },
                 true},
                flag("columns_first", rotate.columns_first),
                number("first", rotate.first)});
  return rotate;
}

void OpDecoder::rope() {
  auto& r = be<Rope>();
  finish({{"style",
           [&r](const JsonValue& v) {
             r.style =
                 v.one_of<Rope::Style>({{"half", Rope::Style::kHalf},
                                        {"interleaved", Rope::Style::kInterleaved},
                                        {"deinterleaved_half", Rope::Style::kDeinterleavedHalf}});
           },
           true},
          dim("head", r.head),
          number("fraction", r.fraction),
          optional_dim("first", r.first),
          flag("at_end", r.at_end),
          flag("back", r.back),
          optional_dim("of_first", r.of_first),
          number("theta", r.theta, true),
          {"scaling", [&r](const JsonValue& v) { r.scaling = decode_paths(v); }},
          {"yarn_factor",
           [&](const JsonValue& v) { r.yarn_factor = decode_number(v, context_.numbers); }},
          {"by_patch", [&](const JsonValue& v) { r.patches = rotate_patches(v); }}});
  if (r.patches && value_.has("scaling")) value_.refuse("a rotation by patches without a scaling");
}

void OpDecoder::position_bias() {
  auto& b = be<PositionBias>();
  finish({weight("table",
                 [&b] {
                   return std::vector{b.buckets, b.heads};
                 }),
          dim("heads", b.heads), dim("buckets", b.buckets)});
}

void OpDecoder::bucket_scores() {
  auto& b = be<BucketScores>();
  const auto of_norm = [&b] { return std::vector{b.size}; };
  finish({weight("table",
                 [&b] {
                   return std::vector{b.buckets.count, b.size};
                 }),
          weight("norm", of_norm),
          weight("norm_bias", of_norm),
          weight("weight",
                 [&b] {
                   return std::vector{b.rows, b.size};
                 }),
          weight("bias", [&b] { return std::vector{b.rows}; }),
          dim("rows", b.rows),
          dim("head_dim", b.head_dim),
          dim("size", b.size),
          {"buckets", [&](const JsonValue& v) { b.buckets = buckets(v); }, true},
          number("eps", b.eps, true),
          number("scale", b.scale),
          optional_dim("scale_of", b.scale_of)});
}

Window OpDecoder::window(const JsonValue& value) const {
  Window window;
  value.object({{"config", [&](const JsonValue& v) { window.config = v.nonempty_text(); }, true},
                {"before", [&](const JsonValue& v) { window.before = v.nonempty_text(); }},
                {"around", [&](const JsonValue& v) { window.around = v.nonempty_text(); }},
                {"when", [&](const JsonValue& v) { window.when = v.nonempty_text(); }},
                {"default", [&](const JsonValue& v) { window.otherwise = v.integer(1); }},
                {"kind",
                 [&](const JsonValue& v) {
                   window.kind = v.one_of<Window::Kind>(
                       {{"sliding", Window::Kind::kSliding}, {"chunked", Window::Kind::kChunked}});
                 }},
                {"layers", [&](const JsonValue& v) {
                   window.layers = decode_layer_set(v, context_.layer_sets, context_.numbers);
                 }}});
  return window;
}

PositionIndex OpDecoder::index(const JsonValue& value) {
  PositionIndex index;
  value.object({dim("heads", index.heads), dim("dim", index.dim), dim("top_k", index.top_k),
                flag("made_before", index.made_before)});
  return index;
}

Buckets OpDecoder::buckets(const JsonValue& value) {
  Buckets buckets;
  value.object({{"kind",
                 [&buckets](const JsonValue& v) {
                   buckets.kind = v.one_of<Buckets::Kind>({{"one_sided", Buckets::Kind::kOneSided},
                                                           {"signed", Buckets::Kind::kSigned}});
                 }},
                dim("count", buckets.count),
                number("most_distance", buckets.most_distance, true),
                flag("of_keys", buckets.of_keys)});
  return buckets;
}

void OpDecoder::attention() {
  auto& a = be<Attention>();
  finish({dim("heads", a.heads),
          dim("kv_heads", a.kv_heads),
          dim("key_dim", a.key_dim),
          dim("value_dim", a.value_dim),
          number("scale", a.scale),
          optional_dim("scale_of", a.scale_of),
          {"mask",
           [&a](const JsonValue& v) {
             a.causal = v.one_of<bool>({{"causal", true}, {"bidirectional", false}});
           },
           true},
          {"window", [&](const JsonValue& v) { a.window = window(v); }},
          number("softcap", a.softcap),
          {"alibi",
           [&a](const JsonValue& v) {
             a.alibi = v.one_of<Alibi>(
                 {{"before_scale", Alibi::kBeforeScale}, {"after_scale", Alibi::kAfterScale}});
           }},
          weight(
              "sinks", [&a] { return std::vector{a.heads}; }, false),
          flag("yarn_scale", a.yarn_scale),
          optional_dim("cache", a.cache),
          {"index", [&](const JsonValue& v) { a.index = index(v); }},
          optional_dim("entries", a.entries),
          {"buckets", [&](const JsonValue& v) { a.buckets = buckets(v); }}});
  constexpr size_t kOperands = 3;
  const size_t wanted = (a.index ? 2 * kOperands : kOperands) + (a.entries ? 2 : 0) + biases_of(a);
  if (op_.in.size() != wanted) {
    value_.refuse(
        "an attention with three inputs, three of its index, two of its entries and those of its "
        "buckets");
  }
}

}  // namespace shardtool::model
