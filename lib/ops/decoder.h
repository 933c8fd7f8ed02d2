#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/mapping/document/json_value.h"
#include "lib/ops/decode_values.h"
#include "lib/ops/op.h"

namespace shardtool::ops {

using mapping::JsonValue;

/// The names of a graph that its ops may refer to.
struct OpContext {
  std::map<std::string, std::string> prefixes;  ///< for "layer/..." and "root/..."
  std::map<std::string, Number> numbers;
  std::map<std::string, LayerSet> layer_sets;
};

/// Decodes one op. Throws kMappingSchema with its place.
Op decode_op(const JsonValue& value, const OpContext& context);

/// Reads one op for the decode() of its kind. decode() declares the op's fields and calls finish()
/// once.
class OpDecoder {
 public:
  using Fields = std::vector<JsonValue::Field>;

  OpDecoder(const JsonValue& value, const OpContext& context) : value_(value), context_(context) {
    op_.place = value.place();
  }
  const JsonValue& value() const { return value_; }
  const OpContext& context() const { return context_; }
  Op& op() { return op_; }
  Op take() && { return std::move(op_); }
  /// Sets the op's kind to T.
  template <class T>
  T& become() {
    return op_.kind.emplace<T>();
  }

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
  /// Reads the name of an activation, or where config.json has it and its default. `others` are
  /// names that the op knows besides those of kActivationNames.
  JsonValue::Field activation(std::string_view key, Word& into,
                              std::vector<std::string> others = {});
  JsonValue::Field flag(std::string_view key, bool& into) {
    return {key, [&into](const JsonValue& v) { into = v.boolean(); }};
  }
  JsonValue::Field optional_dim(std::string_view key, std::optional<Dim>& into) {
    return {key, [&into](const JsonValue& v) { into = decode_dim(v); }};
  }
  JsonValue::Field kernel(layout::Kernel& into) {
    return {"kernel", [&into](const JsonValue& v) {
              into = v.one_of<layout::Kernel>(
                  {{"out_in", layout::Kernel::kOutIn}, {"in_out", layout::Kernel::kInOut}});
            }};
  }
  /// Declares a weight of this op. Weights are in the order of these calls, not of the text.
  /// `shape` is called by finish(), after all fields are read.
  JsonValue::Field weight(std::string_view key, std::function<std::vector<Dim>()> shape,
                          bool required = true) {
    const size_t slot = slots_.size();
    slots_.push_back({std::nullopt, std::move(shape)});
    return {key, [this, slot](const JsonValue& v) { slots_[slot].ref = names(v); }, required};
  }
  /// Decodes the names of a tensor, with the context's prefixes.
  WeightRef names(const JsonValue& value) const;

  /// Reads these fields and those common to all ops.
  void finish(Fields fields);

 private:
  std::string full_name(const JsonValue& value, bool& optional) const;

  const JsonValue& value_;
  const OpContext& context_;
  Op op_;
  struct Slot {
    std::optional<WeightRef> ref;
    std::function<std::vector<Dim>()> shape;
  };
  std::vector<Slot> slots_;
};

}  // namespace shardtool::ops
