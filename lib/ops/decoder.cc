#include "lib/ops/decoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/ops/activation.h"
#include "lib/base/text.h"
#include "lib/ops/op_table.h"
#include "lib/ops/spelling.h"

namespace shardtool::ops {
namespace {

JsonValue member_of(const JsonValue& object, std::string_view key) {
  for (auto& [name, value] : object.members()) {
    if (name == key) return std::move(value);
  }
  object.refuse(fmt::format("an object with \"{}\"", key));
}

/// Throws kMappingSchema unless the op has as many inputs and outputs as its kind.
void check_operands(const OpKind& kind, const Op& op, const JsonValue& value) {
  const auto [least, most, words] = kind.inputs == nullptr ? kind.operands : kind.inputs(op);
  if (op.in.size() < least || op.in.size() > most) {
    value.refuse(words.empty() ? fmt::format("an op \"{}\" with {}", kind.name,
                                             plural(static_cast<i64>(most), "input"))
                               : std::string(words));
  }
  const size_t outputs = kind.outputs(op);
  if (op.out.size() != outputs) {
    value.refuse(fmt::format("an op \"{}\" with {}", kind.name,
                             plural(static_cast<i64>(outputs), "output")));
  }
}

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

JsonValue::Field OpDecoder::activation(std::string_view key, Word& into,
                                       std::vector<std::string> others) {
  const auto read = [&into, others = std::move(others)](const JsonValue& v) {
    into = decode_word(v);
    std::vector<std::string> known = others;
    for (const auto& [name, kind] : kernels::kActivationNames) known.emplace_back(name);
    const bool is_known = std::find(known.begin(), known.end(), into.value) != known.end();
    if (!into.value.empty() && !is_known) v.refuse_word(into.value, known);
  };
  return {key, read, true};
}

Op decode_op(const JsonValue& value, const OpContext& context) {
  const JsonValue name = member_of(value, "op");
  const OpKind* kind = find_op(name.text());
  if (kind == nullptr) {
    std::vector<std::string> known;
    for (const OpKind& row : op_table()) known.emplace_back(row.name);
    name.refuse_word(name.text(), known);
  }
  OpDecoder in(value, context);
  kind->decode(in);
  Op op = std::move(in).take();
  op.row = kind;
  check_operands(*kind, op, value);
  return op;
}

}  // namespace shardtool::ops
