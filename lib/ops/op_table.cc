#include "lib/ops/op_table.h"

#include <algorithm>
#include <array>

namespace shardtool::ops {
namespace {

template <class T>
const T& as(const Op& op) {
  return std::get<T>(op.kind);
}

template <class T>
std::vector<T> listed(T one) {
  std::vector<T> list;
  list.push_back(std::move(one));
  return list;
}
template <class T>
std::vector<T> listed(std::vector<T> list) {
  return list;
}

template <class T, class N>
constexpr Body<N> body_of() {
  if constexpr (requires(const T& op, const OpAt<N>& at) { apply(op, at); }) {
    return [](const OpAt<N>& at) { return listed(apply(as<T>(*at.op.op), at)); };
  } else {
    return nullptr;
  }
}

/// Returns the row of ops T, from the functions in T's header. A header may omit check (any widths
/// fit), inputs and outputs (`operands`, one), price (the products of the op's weights, and the
/// values of an op with a body), is_launched (part of another op's launch) and apply.
template <class T, void (*kDecode)(T&, OpDecoder&) = &decode>
constexpr OpKind row(std::string_view name, Operands operands = {}, std::string_view title = {}) {
  OpKind row{};
  row.name = name;
  row.title = title.empty() ? name : title;
  row.operands = operands;
  row.decode = [](OpDecoder& in) { kDecode(in.become<T>(), in); };
  if constexpr (requires(const T& op) { inputs(op, size_t{}); }) {
    row.inputs = [](const Op& op) { return inputs(as<T>(op), op.in.size()); };
  }
  row.outputs = [](const Op& op) -> size_t {
    if constexpr (requires { outputs(as<T>(op)); }) return outputs(as<T>(op));
    return 1;
  };
  if constexpr (requires(const T& op, const Widths& widths) { check(op, widths); }) {
    row.check = [](const Op& op, const Widths& widths) { check(as<T>(op), widths); };
  }
  row.rules = [](const Op& op, const RuleSite& site) { return rules(as<T>(op), site); };
  row.place = [](Walk& walk, const BoundOp& bound) {
    return listed(place(as<T>(*bound.op), walk, bound));
  };
  row.price = [](const Op& op, Pricing& pricing) {
    if constexpr (requires { price(as<T>(op), pricing); }) {
      price(as<T>(op), pricing);
    } else {
      pricing.add_products();
      if constexpr (body_of<T, double>() != nullptr) pricing.add_values();
    }
  };
  row.is_launched = [](const Op& op) {
    if constexpr (requires { is_launched(as<T>(op)); }) return is_launched(as<T>(op));
    return false;
  };
  row.apply = {body_of<T, Field>(), body_of<T, double>(), body_of<T, float>()};
  return row;
}

constexpr Operands kNone{0, 0};
constexpr Operands kTwo{2, 2};
constexpr Operands kOfRecurrence{
    4, 5, "a recurrence with queries, keys, values and decays, and with gates or none"};

/// The ops by their names in graphs.
constexpr auto kTable = std::to_array<OpKind>({
    row<Embed>("embed", kNone),
    row<ExtraInput>("given", kNone),
    row<Sinusoids>("sinusoids", kNone),
    row<ConvolveFrames>("convolve_frames", {}, "convolve frames"),
    row<Linear>("linear"),
    row<Linear, decode_logits>("logits", {}, "linear"),
    row<Merge>("merge"),
    row<Insert>("insert", {2, 2, "an op with two inputs, words and an image"}),
    row<ClassToken>("class_token", {}, "class token"),
    row<Split>("split"),
    row<Join>("join"),
    row<OfLayer>("of_layer", {}, "of layer"),
    row<Norm>("norm"),
    row<Sums>("squares", {}, "sums"),
    row<Sums, decode_plain>("sums"),
    row<Normalise>("normalise", {2, 2, "a value and the sums of its squares"}),
    row<Resize>("resize", {3, 3, "a value, the sum of its squares, and of another's"}),
    row<GaussianTopK>("cutoff", {3, 3, "a value, its sum, and that of its squares"}),
    row<HyperConnection>("mix", {2, 2, "streams side by side, and their factors"}),
    row<Sinkhorn>("balance"),
    row<Rope>("rope"),
    row<PositionBias>("position_bias", kNone, "position bias"),
    row<BucketScores>("bucket_scores", {}, "bucket scores"),
    row<Attention>("attention", {3, 10}),
    row<Convolve>("convolve"),
    row<CompressedKv>("pool", {2, 2, "a value, and its scores"}),
    row<StepSize>("step"),
    row<Decay>("decay"),
    row<Fade>("fade", kNone),
    row<Recurrence>("recurrence", kOfRecurrence),
    row<Activation>("act", {}, "activation"),
    row<Xielu>("xielu"),
    row<Softcap>("softcap"),
    row<Clamp>("clamp"),
    row<Multiply>("mul", kTwo, "multiply"),
    row<Add>("add", kTwo),
    row<Scale>("scale"),
    row<Shift>("shift"),
    row<TemperatureTuning>("temper"),
    row<Router>("router"),
    row<Experts>("experts", {2, 2, "the experts' input and their weights"}),
});

}  // namespace

std::span<const OpKind> op_table() {
  return kTable;
}

const OpKind* find_op(std::string_view name) {
  const auto* const found = std::ranges::find(kTable, name, &OpKind::name);
  return found == kTable.end() ? nullptr : found;
}

}  // namespace shardtool::ops
