#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/model/graph/decode_op.h"
#include "lib/model/graph/decode_values.h"

namespace shardtool::model {

/// Reads one op: the fields that all kinds have, and those of its own.
class OpDecoder {
 public:
  using JsonValue = mapping::JsonValue;
  using Fields = std::vector<JsonValue::Field>;

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
  JsonValue::Field optional_dim(std::string_view key, std::optional<Dim>& into) {
    return {key, [&into](const JsonValue& v) { into = decode_dim(v); }};
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
  void given();
  void sinusoids();
  void convolve_frames();
  void linear();
  void logits();
  void read_linear(Fields more);
  JsonValue::Field columns(Linear& into, std::vector<Dim>& axes);
  JsonValue::Field patches(Patches& into, bool required = true);
  void merge();
  void insert();
  void class_token();
  void split();
  void join();
  void norm();
  void of_layer();
  void squares();
  void sums();
  void normalise();
  void resize();
  void cutoff();
  void mix();
  void balance();
  void rope();
  void position_bias();
  void bucket_scores();
  void attention();
  void convolve();
  void pool();
  void step();
  void decay();
  void fade();
  void recurrence();
  void activation();
  void xielu();
  void multiply() { op_.kind = Multiply{}, finish({}); }
  void add() { op_.kind = Add{}, finish({}); }
  void scale();
  void shift();
  void temper();
  void softcap();
  void clamp();
  void router();
  void experts();
  Experts::Form form(const JsonValue& value);
  Window window(const JsonValue& value) const;
  RotatePatches rotate_patches(const JsonValue& value);
  PositionIndex index(const JsonValue& value);
  Buckets buckets(const JsonValue& value);

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

}  // namespace shardtool::model
