#include <fmt/format.h>

#include "lib/model/graph/op_decoder.h"

namespace shardtool::model {

void OpDecoder::router() {
  auto& r = be<Router>();
  std::optional<std::vector<Dim>> bias_shape;
  finish({{"kind",
           [&r](const JsonValue& v) {
             r.kind =
                 v.one_of<Router::Kind>({{"softmax_topk", Router::Kind::kSoftmaxTopK},
                                         {"topk_softmax", Router::Kind::kTopKSoftmax},
                                         {"group_max", Router::Kind::kGroupMax},
                                         {"topk_sigmoid", Router::Kind::kTopKSigmoid},
                                         {"sigmoid_groups", Router::Kind::kSigmoidGroups},
                                         {"corrected_softmax", Router::Kind::kCorrectedSoftmax},
                                         {"corrected_sigmoid", Router::Kind::kCorrectedSigmoid},
                                         {"root_softplus", Router::Kind::kRootSoftplus},
                                         {"sparse_mixer", Router::Kind::kSparseMixer}});
           },
           true},
          weight("weight",
                 [&r] {
                   return std::vector{r.experts, r.columns};
                 }),
          weight(
              "bias", [&] { return bias_shape.value_or(std::vector{r.experts}); }, false),
          {"bias_shape", [&](const JsonValue& v) { bias_shape = decode_dims(v); }},
          weight(
              "table",
              [&r] {
                return std::vector{r.words.value_or(Dim{}), r.top_k};
              },
              false),
          optional_dim("words", r.words),
          dim("experts", r.experts),
          dim("top_k", r.top_k),
          dim("columns", r.columns),
          word("renormalise", r.renormalise),
          number("scale", r.scale),
          number("groups", r.groups),
          number("top_groups", r.top_groups),
          number("least_sum", r.least_sum),
          number("jitter", r.jitter)});
  if (r.words.has_value() != value_.has("table") || (r.words && value_.has("bias"))) {
    value_.refuse("a router with \"words\" where it has a \"table\", which is there for a bias");
  }
}

Experts::Form OpDecoder::form(const JsonValue& value) {
  Experts::Form form;
  layout::Kernel of_all = layout::Kernel::kOutIn;
  std::vector<std::optional<layout::Kernel>> own;
  value.object(
      {{"order",
        [&](const JsonValue& v) {
          form.order = v.one_of<Experts::Order>({{"separate", Experts::Order::kSeparate},
                                                 {"stacked", Experts::Order::kStacked},
                                                 {"interleaved", Experts::Order::kInterleaved},
                                                 {"ungated", Experts::Order::kUngated}});
        },
        true},
       {"per_expert", [&](const JsonValue& v) { form.per_expert = v.boolean(); }, true},
       flag("in_rows", form.in_rows),
       kernel(of_all),
       {"weights",
        [&](const JsonValue& v) {
          for (const JsonValue& one : v.elements(2)) {
            WeightRef ref;
            std::vector<Dim> shape;
            layout::Kernel stored = layout::Kernel::kOutIn;
            one.object({{"name", [&](const JsonValue& n) { ref = names(n); }, true},
                        {"shape", [&](const JsonValue& s) { shape = decode_dims(s); }, true},
                        kernel(stored)});
            ref.shape = std::move(shape);
            own.push_back(one.has("kernel") ? std::optional(stored) : std::nullopt);
            form.weights.push_back(std::move(ref));
          }
        },
        true}});
  const size_t matrices = form.order == Experts::Order::kSeparate ? 3 : 2;
  if (form.weights.size() != matrices && form.weights.size() != 2 * matrices) {
    value.refuse(fmt::format("a form of {} weights, or of these and their biases", matrices));
  }
  if (form.per_expert && form.in_rows) value.refuse("a stack where experts are in rows");
  for (const auto& stored : own) form.kernels.push_back(stored.value_or(of_all));
  return form;
}

void OpDecoder::experts() {
  auto& e = be<Experts>();
  finish({dim("experts", e.experts),
          dim("top_k", e.top_k),
          dim("embed", e.embed),
          dim("mlp", e.mlp),
          optional_dim("among", e.among),
          word("activation", e.activation),
          number("limit", e.limit),
          flag("scales_input", e.scales_input),
          {"forms",
           [&](const JsonValue& v) {
             for (const JsonValue& one : v.elements(1)) e.forms.push_back(form(one));
           },
           true}});
}

}  // namespace shardtool::model
