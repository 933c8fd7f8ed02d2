#include "shardtool/model/decode_op.h"

#include <fmt/format.h>

#include <array>
#include <functional>

namespace shardtool::model {
namespace {

using mapping::JsonValue;
using Fields = std::vector<JsonValue::Field>;

std::string word_of(const JsonValue& object, std::string_view key) {
  for (const auto& [name, value] : object.members()) {
    if (name == key) return value.text();
  }
  object.refuse(fmt::format("an object with \"{}\"", key));
}

Dim decode_dim(const JsonValue& value) {
  return value.located([&] { return mapping::parse_dim(value.text()); });
}

std::vector<Dim> decode_dims(const JsonValue& value) {
  std::vector<Dim> dims;
  for (const JsonValue& dim : value.elements(1)) dims.push_back(decode_dim(dim));
  return dims;
}

Word decode_word(const JsonValue& value) {
  if (value.is_text()) return {"", value.text()};
  Word word;
  value.object({{"config", [&](const JsonValue& v) { word.config = v.nonempty_text(); }, true},
                {"default", [&](const JsonValue& v) { word.value = v.text(); }, true}});
  return word;
}

/// Reads one op: the fields that all kinds have, and those of its own.
class OpDecoder {
 public:
  OpDecoder(const JsonValue& value, const OpContext& context) : value_(value), context_(context) {
    op_.place = value.place();
  }
  Op decode();

 private:
  void finish(Fields fields);

  JsonValue::Field dim(std::string_view key, Dim& into, bool required = true) {
    return {key, [&into](const JsonValue& v) { into = decode_dim(v); }, required};
  }
  JsonValue::Field number(std::string_view key, Number& into, bool required = false) {
    return {key, [this, &into](const JsonValue& v) { into = decode_number(v, context_.numbers); },
            required};
  }
  JsonValue::Field word(std::string_view key, Word& into) {
    return {key, [&into](const JsonValue& v) { into = decode_word(v); }, true};
  }
  JsonValue::Field flag(std::string_view key, bool& into) {
    return {key, [&into](const JsonValue& v) { into = v.boolean(); }};
  }
  JsonValue::Field kernel(layout::Kernel& into) {
    return {"kernel", [&into](const JsonValue& v) {
              into = v.one_of<layout::Kernel>(
                  {{"out_in", layout::Kernel::kOutIn}, {"in_out", layout::Kernel::kInOut}});
            }};
  }
  /// A weight of this op. Their order is that of the calls, whatever order the text has; `shape` is
  /// asked when all fields are read.
  JsonValue::Field weight(std::string_view key, std::function<std::vector<Dim>()> shape,
                          bool required = true) {
    const size_t slot = slots_.size();
    slots_.push_back({std::nullopt, std::move(shape)});
    return {key, [this, slot](const JsonValue& v) { slots_[slot].ref = names(v); }, required};
  }

  WeightRef names(const JsonValue& value) const;
  std::string full_name(const JsonValue& value, bool& optional) const;

  void embed();
  void linear();
  void logits();
  void read_linear(Fields more);
  void split();
  void join();
  void norm();
  void rope();
  void attention();
  void activation();
  void multiply() { op_.kind = Multiply{}, finish({}); }
  void add() { op_.kind = Add{}, finish({}); }
  void scale();
  void softcap();
  void router();
  void experts();
  Experts::Form form(const JsonValue& value) const;
  Window window(const JsonValue& value) const;

  template <class T>
  T& be() {
    op_.kind = T{};
    return std::get<T>(op_.kind);
  }

  const JsonValue& value_;
  const OpContext& context_;
  Op op_;
  struct Slot {
    std::optional<WeightRef> ref;
    std::function<std::vector<Dim>()> shape;
  };
  std::vector<Slot> slots_;
};

std::string OpDecoder::full_name(const JsonValue& value, bool& optional) const {
  std::string name = value.nonempty_text();
  if (name.ends_with('?')) {
    optional = true;
    name.pop_back();
  }
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return name;
  const auto prefix = context_.prefixes.find(name.substr(0, slash));
  if (prefix == context_.prefixes.end()) value.refuse("a name, or one below a prefix");
  return prefix->second + name.substr(slash + 1);
}

WeightRef OpDecoder::names(const JsonValue& value) const {
  WeightRef ref;
  if (!value.is_array()) {
    ref.names = {full_name(value, ref.optional)};
    return ref;
  }
  for (const JsonValue& name : value.elements(1))
    ref.names.push_back(full_name(name, ref.optional));
  return ref;
}

void OpDecoder::finish(Fields fields) {
  const auto values = [](std::vector<std::string>& into) {
    return [&into](const JsonValue& v) {
      if (v.is_text()) into = {v.identifier()};
      if (v.is_text()) return;
      for (const JsonValue& name : v.elements(1)) into.push_back(name.identifier());
    };
  };
  fields.push_back({"op", [](const JsonValue&) {}, true});
  fields.push_back({"in", values(op_.in)});
  fields.push_back({"out", values(op_.out), true});
  value_.object(fields);
  for (Slot& slot : slots_) {
    if (!slot.ref) continue;
    slot.ref->shape = slot.shape();
    op_.weights.push_back(std::move(*slot.ref));
  }
}

void OpDecoder::embed() {
  auto& e = be<Embed>();
  finish({weight("table",
                 [&e] {
                   return std::vector{e.rows, e.size};
                 }),
          dim("rows", e.rows),
          dim("size", e.size),
          {"by", [&e](const JsonValue& v) {
             e.by = v.one_of<Embed::By>({{"token", Embed::By::kToken},
                                         {"position", Embed::By::kPosition},
                                         {"segment", Embed::By::kSegment}});
           }}});
}

void OpDecoder::read_linear(Fields more) {
  auto& l = be<Linear>();
  more.push_back(weight("weight", [&l] {
    return l.kernel == layout::Kernel::kOutIn ? std::vector{l.rows, l.columns}
                                              : std::vector{l.columns, l.rows};
  }));
  more.push_back(weight(
      "bias", [&l] { return std::vector{l.rows}; }, false));
  more.push_back(dim("rows", l.rows));
  more.push_back(dim("columns", l.columns));
  more.push_back(kernel(l.kernel));
  finish(std::move(more));
}

void OpDecoder::linear() {
  read_linear({});
}

void OpDecoder::logits() {
  op_.is_head = true;
  read_linear({});
}

void OpDecoder::split() {
  auto& s = be<Split>();
  finish({{"sections", [&s](const JsonValue& v) { s.sections = decode_dims(v); }, true},
          dim("heads", s.heads, false),
          {"order", [&s](const JsonValue& v) {
             s.order = v.one_of<Split::Order>({{"concat", Split::Order::kConcat},
                                               {"per_head", Split::Order::kPerHead},
                                               {"interleaved", Split::Order::kInterleaved}});
           }}});
  if ((s.order == Split::Order::kPerHead) == s.heads.sections.empty()) {
    value_.refuse("an op with \"heads\" where the order is per_head, and only there");
  }
}

void OpDecoder::join() {
  auto& j = be<Join>();
  finish({{"sections", [&j](const JsonValue& v) { j.sections = decode_dims(v); }, true},
          dim("heads", j.heads)});
}

void OpDecoder::norm() {
  auto& n = be<Norm>();
  const auto size = [&n] { return std::vector{n.size}; };
  finish(
      {{"kind",
        [&n](const JsonValue& v) {
          n.kind = v.one_of<Norm::Kind>({{"rms", Norm::Kind::kRms}, {"layer", Norm::Kind::kLayer}});
        },
        true},
       weight("weight", size),
       weight("bias", size, false),
       dim("size", n.size),
       number("eps", n.eps, true),
       flag("per_head", n.per_head),
       flag("one_plus_weight", n.one_plus_weight),
       flag("cast_after_weight", n.cast_after_weight)});
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
          number("theta", r.theta, true)});
}

Window OpDecoder::window(const JsonValue& value) const {
  Window window;
  value.object({{"config", [&](const JsonValue& v) { window.config = v.nonempty_text(); }, true},
                {"when", [&](const JsonValue& v) { window.when = v.nonempty_text(); }},
                {"layers",
                 [&](const JsonValue& v) {
                   window.layers = v.one_of<Window::Layers>({{"all", Window::Layers::kAll},
                                                             {"even", Window::Layers::kEven},
                                                             {"listed", Window::Layers::kListed}});
                 },
                 true}});
  return window;
}

void OpDecoder::attention() {
  auto& a = be<Attention>();
  finish({dim("heads", a.heads),
          dim("kv_heads", a.kv_heads),
          dim("key_dim", a.key_dim),
          dim("value_dim", a.value_dim),
          dim("scale_of", a.scale_of),
          {"mask",
           [&a](const JsonValue& v) {
             a.causal = v.one_of<bool>({{"causal", true}, {"bidirectional", false}});
           },
           true},
          {"window", [&](const JsonValue& v) { a.window = window(v); }},
          number("softcap", a.softcap),
          weight(
              "sinks", [&a] { return std::vector{a.heads}; }, false),
          flag("yarn_scale", a.yarn_scale),
          {"cache", [&a](const JsonValue& v) { a.cache = decode_dim(v); }}});
}

void OpDecoder::activation() {
  auto& a = be<Activation>();
  finish({word("kind", a.kind)});
}

void OpDecoder::scale() {
  auto& s = be<Scale>();
  finish({number("by", s.by, true), flag("by_sqrt", s.by_sqrt)});
}

void OpDecoder::softcap() {
  auto& s = be<Softcap>();
  finish({number("cap", s.cap, true)});
}

void OpDecoder::router() {
  auto& r = be<Router>();
  finish({{"kind",
           [&r](const JsonValue& v) {
             r.kind = v.one_of<Router::Kind>({{"softmax_topk", Router::Kind::kSoftmaxTopK},
                                              {"topk_softmax", Router::Kind::kTopKSoftmax},
                                              {"group_max", Router::Kind::kGroupMax},
                                              {"sigmoid_groups", Router::Kind::kSigmoidGroups}});
           },
           true},
          weight("weight",
                 [&r] {
                   return std::vector{r.experts, r.columns};
                 }),
          weight(
              "bias", [&r] { return std::vector{r.experts}; }, false),
          dim("experts", r.experts),
          dim("top_k", r.top_k),
          dim("columns", r.columns),
          word("renormalise", r.renormalise),
          number("scale", r.scale),
          number("groups", r.groups),
          number("top_groups", r.top_groups)});
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
          {"forms",
           [&](const JsonValue& v) {
             for (const JsonValue& one : v.elements(1)) e.forms.push_back(form(one));
           },
           true}});
}

struct KindOfOp {
  std::string_view name;
  void (OpDecoder::*read)();
};

Op OpDecoder::decode() {
  constexpr auto kKinds = std::to_array<KindOfOp>({{"embed", &OpDecoder::embed},
                                                   {"linear", &OpDecoder::linear},
                                                   {"logits", &OpDecoder::logits},
                                                   {"split", &OpDecoder::split},
                                                   {"join", &OpDecoder::join},
                                                   {"norm", &OpDecoder::norm},
                                                   {"rope", &OpDecoder::rope},
                                                   {"attention", &OpDecoder::attention},
                                                   {"act", &OpDecoder::activation},
                                                   {"mul", &OpDecoder::multiply},
                                                   {"add", &OpDecoder::add},
                                                   {"scale", &OpDecoder::scale},
                                                   {"softcap", &OpDecoder::softcap},
                                                   {"router", &OpDecoder::router},
                                                   {"experts", &OpDecoder::experts}});
  const std::string name = word_of(value_, "op");
  for (const KindOfOp& kind : kKinds) {
    if (kind.name != name) continue;
    (this->*kind.read)();
    return std::move(op_);
  }
  value_.refuse("an op whose kind is known");
}

}  // namespace

Number decode_number(const JsonValue& value, const std::map<std::string, Number>& named) {
  if (value.is_number()) return {{}, value.number()};
  if (value.is_text()) {
    const auto found = named.find(value.text());
    if (found == named.end()) value.refuse("a number or the name of one of the \"numbers\"");
    return found->second;
  }
  Number number;
  const auto paths = [&number](const JsonValue& v) {
    if (v.is_text()) number.config = {v.nonempty_text()};
    if (v.is_text()) return;
    for (const JsonValue& path : v.elements(1)) number.config.push_back(path.nonempty_text());
  };
  const auto condition = [&number](const JsonValue& v) {
    Condition& when = number.when.emplace();
    v.object({{"config", [&](const JsonValue& path) { when.config = path.nonempty_text(); }, true},
              {"is", [&](const JsonValue& word) { when.is = word.nonempty_text(); }, true}});
  };
  value.object({{"config", paths, true},
                {"default", [&](const JsonValue& v) { number.value = v.number(); }, true},
                {"when", condition}});
  return number;
}

Op decode_op(const JsonValue& value, const OpContext& context) {
  return OpDecoder(value, context).decode();
}

}  // namespace shardtool::model
