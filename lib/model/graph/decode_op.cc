#include "lib/model/graph/decode_op.h"

#include <fmt/format.h>

#include <array>

#include "lib/model/graph/op_decoder.h"
#include "lib/model/graph/operands.h"
#include "lib/model/graph/spelling.h"

namespace shardtool::model {
namespace {

using mapping::JsonValue;

std::string word_of(const JsonValue& object, std::string_view key) {
  for (const auto& [name, value] : object.members()) {
    if (name == key) return value.text();
  }
  object.refuse(fmt::format("an object with \"{}\"", key));
}

/// What the readers of ops are found by.
struct KindOfOp {
  std::string_view name;
  void (OpDecoder::*read)();
};

}  // namespace

std::string OpDecoder::full_name(const JsonValue& value, bool& optional) const {
  std::string name = value.nonempty_text();
  if (name.ends_with('?')) {
    optional = true;
    name.pop_back();
  }
  if (const size_t slash = name.find('/'); slash != std::string::npos) {
    const auto prefix = context_.prefixes.find(name.substr(0, slash));
    if (prefix == context_.prefixes.end()) value.refuse("a name, or one below a prefix");
    name = prefix->second + name.substr(slash + 1);
  }
  value.located([&name] { return Spelling(name); });
  return name;
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
  std::optional<std::vector<Dim>> stored;
  finish({weight("table",
                 [&] {
                   return stored.value_or(std::vector{e.rows, e.size});
                 }),
          {"table_shape", [&](const JsonValue& v) { stored = decode_dims(v); }},
          dim("rows", e.rows),
          dim("size", e.size),
          number("offset", e.offset),
          patches(e.patches, false),
          {"by", [&e](const JsonValue& v) {
             e.by = v.one_of<Embed::By>({{"token", Embed::By::kToken},
                                         {"position", Embed::By::kPosition},
                                         {"segment", Embed::By::kSegment},
                                         {"patch", Embed::By::kPatch}});
           }}});
  if ((e.by == Embed::By::kPatch) != value_.has("patches")) {
    value_.refuse("an op with \"patches\" where it is by patch, and only there");
  }
}

void OpDecoder::given() {
  finish({dim("size", be<Given>().size)});
}

void OpDecoder::sinusoids() {
  auto& s = be<Sinusoids>();
  finish({dim("size", s.size), number("base", s.base), number("offset", s.offset),
          flag("reaches_base", s.reaches_base)});
}

void OpDecoder::convolve_frames() {
  auto& c = be<ConvolveFrames>();
  finish({weight("weight",
                 [&c] {
                   return std::vector{c.rows, c.columns, c.taps};
                 }),
          weight(
              "bias", [&c] { return std::vector{c.rows}; }, false),
          dim("rows", c.rows), dim("columns", c.columns), dim("taps", c.taps),
          dim("frames", c.frames), dim("stride", c.stride)});
}

/// One axis, or a list of those that together are the columns.
JsonValue::Field OpDecoder::columns(Linear& into, std::vector<Dim>& axes) {
  return {"columns",
          [&](const JsonValue& v) {
            if (!v.is_array()) {
              axes = {into.columns = decode_dim(v)};
              return;
            }
            axes = decode_dims(v);
            mapping::Product all;
            for (const Dim& axis : axes) {
              const bool is_product = axis.sections.size() == 1;
              if (!is_product) v.refuse("axes without '+'");
              const auto& factors = axis.sections.front().factors;
              all.factors.insert(all.factors.end(), factors.begin(), factors.end());
            }
            into.columns.sections = {std::move(all)};
          },
          true};
}

void OpDecoder::read_linear(Fields more) {
  auto& l = be<Linear>();
  std::vector<Dim> axes;
  std::optional<std::vector<Dim>> bias_shape;
  more.push_back(weight("weight", [&] {
    std::vector<Dim> shape = axes;
    shape.insert(l.kernel == layout::Kernel::kOutIn ? shape.begin() : shape.end(), l.rows);
    return shape;
  }));
  more.push_back(weight(
      "bias", [&] { return bias_shape.value_or(std::vector{l.rows}); }, false));
  more.push_back({"bias_shape", [&](const JsonValue& v) { bias_shape = decode_dims(v); }});
  more.push_back(dim("rows", l.rows));
  more.push_back(columns(l, axes));
  more.push_back(kernel(l.kernel));
  more.push_back(optional_dim("groups", l.groups));
  finish(std::move(more));
  if (l.groups && l.kernel != layout::Kernel::kOutIn) {
    value_.refuse("an op whose kernel is out_in where it has groups");
  }
  if (axes.size() > 1 && l.kernel != layout::Kernel::kOutIn) {
    value_.refuse("an op whose kernel is out_in where the columns are several axes");
  }
}

void OpDecoder::linear() {
  read_linear({});
}

void OpDecoder::logits() {
  op_.is_head = true;
  read_linear({});
}

JsonValue::Field OpDecoder::patches(Patches& into, bool required) {
  return {"patches",
          [this, &into](const JsonValue& v) {
            v.object({{"order",
                       [&into](const JsonValue& order) {
                         into.order =
                             order.one_of<Patches::Order>({{"rows", Patches::Order::kRows},
                                                           {"squares", Patches::Order::kSquares}});
                       },
                       true},
                      dim("count", into.count),
                      flag("has_class", into.has_class)});
          },
          required};
}

void OpDecoder::merge() {
  auto& m = be<Merge>();
  finish({patches(m.patches),
          {"form",
           [&m](const JsonValue& v) {
             m.form = v.one_of<Merge::Form>({{"beside", Merge::Form::kBeside},
                                             {"within", Merge::Form::kWithin},
                                             {"mean", Merge::Form::kMean}});
           },
           true}});
}

void OpDecoder::insert() {
  auto& i = be<Insert>();
  finish({patches(i.patches)});
}

void OpDecoder::class_token() {
  auto& c = be<ClassToken>();
  std::optional<std::vector<Dim>> stored;
  finish({weight("weight", [&] { return stored.value_or(std::vector{c.size}); }),
          {"weight_shape", [&](const JsonValue& v) { stored = decode_dims(v); }},
          dim("size", c.size)});
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
  finish({{"sections", [&j](const JsonValue& v) { j.sections = decode_dims(v); }},
          dim("heads", j.heads, false),
          {"order", [&j](const JsonValue& v) {
             j.order = v.one_of<Join::Order>(
                 {{"per_head", Join::Order::kPerHead}, {"concat", Join::Order::kConcat}});
           }}});
  const bool is_per_head = j.order == Join::Order::kPerHead;
  if (is_per_head == j.heads.sections.empty() || is_per_head == j.sections.empty()) {
    value_.refuse(
        "an op with \"heads\" and \"sections\" where the order is per_head, and only there");
  }
}

void OpDecoder::of_layer() {
  auto& o = be<OfLayer>();
  finish({dim("size", o.size)});
}

void OpDecoder::activation() {
  auto& a = be<Activation>();
  finish({word("kind", a.kind)});
}

void OpDecoder::xielu() {
  be<Xielu>();
  const auto number = [] { return std::vector<Dim>(); };
  finish({weight("alpha_p", number), weight("alpha_n", number), weight("beta", number),
          weight("eps", number)});
}

void OpDecoder::scale() {
  auto& s = be<Scale>();
  finish({weight(
              "weight", [&s] { return std::vector{s.size.value_or(Dim{})}; }, false),
          optional_dim("size", s.size),
          {"sections", [&s](const JsonValue& v) { s.sections = decode_dims(v); }},
          number("by", s.by),
          flag("by_sqrt", s.by_sqrt),
          flag("divides", s.divides)});
  if (!s.sections.empty() && !s.size) value_.refuse("an op with \"size\" where it has sections");
  if (s.size.has_value() != !op_.weights.empty()) {
    value_.refuse("an op with \"size\" where there is a \"weight\", and only there");
  }
  if (!value_.has("by") && op_.weights.empty()) value_.refuse("an op with \"by\" or \"weight\"");
}

void OpDecoder::shift() {
  auto& s = be<Shift>();
  finish({weight(
              "bias", [&s] { return std::vector{s.size.value_or(Dim{})}; }, false),
          optional_dim("size", s.size), number("by", s.by)});
  if (s.size.has_value() != !op_.weights.empty()) {
    value_.refuse("an op with \"size\" where there is a \"bias\", and only there");
  }
  if (!value_.has("by") && op_.weights.empty()) value_.refuse("an op with \"by\" or \"bias\"");
}

void OpDecoder::temper() {
  auto& t = be<Temper>();
  finish({number("strength", t.strength, true), number("span", t.span, true),
          number("first", t.first)});
}

void OpDecoder::clamp() {
  auto& c = be<Clamp>();
  finish({number("limit", c.limit, true), flag("from_above", c.from_above)});
}

void OpDecoder::softcap() {
  auto& s = be<Softcap>();
  finish({number("cap", s.cap, true)});
}

Op OpDecoder::decode() {
  constexpr auto kKinds = std::to_array<KindOfOp>({{"embed", &OpDecoder::embed},
                                                   {"given", &OpDecoder::given},
                                                   {"sinusoids", &OpDecoder::sinusoids},
                                                   {"convolve_frames", &OpDecoder::convolve_frames},
                                                   {"linear", &OpDecoder::linear},
                                                   {"logits", &OpDecoder::logits},
                                                   {"merge", &OpDecoder::merge},
                                                   {"insert", &OpDecoder::insert},
                                                   {"class_token", &OpDecoder::class_token},
                                                   {"split", &OpDecoder::split},
                                                   {"join", &OpDecoder::join},
                                                   {"norm", &OpDecoder::norm},
                                                   {"squares", &OpDecoder::squares},
                                                   {"normalise", &OpDecoder::normalise},
                                                   {"sums", &OpDecoder::sums},
                                                   {"resize", &OpDecoder::resize},
                                                   {"cutoff", &OpDecoder::cutoff},
                                                   {"mix", &OpDecoder::mix},
                                                   {"balance", &OpDecoder::balance},
                                                   {"of_layer", &OpDecoder::of_layer},
                                                   {"rope", &OpDecoder::rope},
                                                   {"position_bias", &OpDecoder::position_bias},
                                                   {"bucket_scores", &OpDecoder::bucket_scores},
                                                   {"attention", &OpDecoder::attention},
                                                   {"convolve", &OpDecoder::convolve},
                                                   {"pool", &OpDecoder::pool},
                                                   {"step", &OpDecoder::step},
                                                   {"decay", &OpDecoder::decay},
                                                   {"fade", &OpDecoder::fade},
                                                   {"recurrence", &OpDecoder::recurrence},
                                                   {"act", &OpDecoder::activation},
                                                   {"xielu", &OpDecoder::xielu},
                                                   {"mul", &OpDecoder::multiply},
                                                   {"add", &OpDecoder::add},
                                                   {"scale", &OpDecoder::scale},
                                                   {"shift", &OpDecoder::shift},
                                                   {"temper", &OpDecoder::temper},
                                                   {"softcap", &OpDecoder::softcap},
                                                   {"clamp", &OpDecoder::clamp},
                                                   {"router", &OpDecoder::router},
                                                   {"experts", &OpDecoder::experts}});
  const std::string name = word_of(value_, "op");
  for (const KindOfOp& kind : kKinds) {
    if (kind.name != name) continue;
    (this->*kind.read)();
    check_operands(name, op_, value_);
    return std::move(op_);
  }
  value_.refuse("an op whose kind is known");
}

Op decode_op(const JsonValue& value, const OpContext& context) {
  return OpDecoder(value, context).decode();
}

}  // namespace shardtool::model
