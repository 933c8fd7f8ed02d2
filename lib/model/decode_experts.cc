#include "shardtool/model/op_decoder.h"

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
          dim("experts", r.experts),
          dim("top_k", r.top_k),
          dim("columns", r.columns),
          word("renormalise", r.renormalise),
          number("scale", r.scale),
          number("groups", r.groups),
          number("top_groups", r.top_groups),
          number("least_sum", r.least_sum),
          number("jitter", r.jitter)});
}

Experts::Form OpDecoder::form(const JsonValue& value) const {
  Experts::Form form;
  value.object(
      {{"order",
        [&](const JsonValue& v) {
          form.order = v.one_of<Experts::Order>({{"separate", Experts::Order::kSeparate},
                                                 {"stacked", Experts::Order::kStacked},
                                                 {"interleaved", Experts::Order::kInterleaved}});
        },
        true},
       {"per_expert", [&](const JsonValue& v) { form.per_expert = v.boolean(); }, true},
       {"kernel",
        [&](const JsonValue& v) {
          form.kernel = v.one_of<layout::Kernel>(
              {{"out_in", layout::Kernel::kOutIn}, {"in_out", layout::Kernel::kInOut}});
        }},
       {"weights",
        [&](const JsonValue& v) {
          for (const JsonValue& one : v.elements(2)) {
            WeightRef ref;
            std::vector<Dim> shape;
            one.object({{"name", [&](const JsonValue& n) { ref = names(n); }, true},
                        {"shape", [&](const JsonValue& s) { shape = decode_dims(s); }, true}});
            ref.shape = std::move(shape);
            form.weights.push_back(std::move(ref));
          }
        },
        true}});
  return form;
}

void OpDecoder::experts() {
  auto& e = be<Experts>();
  finish({dim("experts", e.experts),
          dim("top_k", e.top_k),
          dim("embed", e.embed),
          dim("mlp", e.mlp),
          word("activation", e.activation),
          flag("scales_input", e.scales_input),
          {"forms",
           [&](const JsonValue& v) {
             for (const JsonValue& one : v.elements(1)) e.forms.push_back(form(one));
           },
           true}});
}

}  // namespace shardtool::model
