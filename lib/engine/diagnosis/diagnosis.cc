#include "lib/engine/diagnosis/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/base/text.h"
#include "lib/engine/diagnosis/other_tensor.h"
#include "lib/engine/diagnosis/part_diagnosis.h"
#include "lib/engine/weights/block_grid.h"
#include "lib/engine/weights/summed_bias.h"

namespace shardtool::engine {
namespace {

/// Maximum number of parts to describe; further ones are only counted.
constexpr i64 kMostTold = 4;

/// Diagnosis of the tensors of one op.
struct OpDiagnosis {
  std::string text;
  std::string tensor;  ///< first faulty tensor
  i64 rank = -1;
};

/// Section names of an op's output, from the op that reads and splits it (fused projections).
std::vector<std::string> sections_of(const model::Layer& layer, const ops::BoundOp& op) {
  if (op.form != nullptr && op.form->order == ops::Experts::Order::kStacked) {
    return {"gate", "up"};
  }
  for (const ops::BoundOp& other : layer.ops) {
    const bool reads =
        !other.op->in.empty() && !op.op->out.empty() && other.op->in.front() == op.op->out.front();
    if (reads && std::holds_alternative<ops::Split>(other.op->kind)) return other.op->out;
  }
  return {};
}

class OpTelling {
 public:
  /// `stored` is shards.stored().
  OpTelling(const Side& whole, const Side& shards, const Side& stored, const model::Layer& layer)
      : whole_(whole), shards_(shards), stored_(stored), layer_(layer) {}

  /// Returns an empty diagnosis if every byte equals the whole model's.
  OpDiagnosis tell(const ops::BoundOp& op) {
    const std::vector<std::string> sections = sections_of(layer_, op);
    for (const size_t tensor : stored_behind(shards_, op)) tell_tensor(op, tensor, sections);
    if (told_ > kMostTold) {
      result_.text += fmt::format("; and {} differ", plural(told_ - kMostTold, "more shard"));
    }
    return std::move(result_);
  }

 private:
  void tell_tensor(const ops::BoundOp& op, size_t tensor,
                   const std::vector<std::string>& sections) {
    if (is_share_of_sum(shards_, op, tensor)) {
      const std::string text = describe_summed_bias(whole_, shards_, op, tensor);
      if (!text.empty()) add(tensor, shards_.layouts(tensor).ranks().front(), text);
      return;
    }
    for (const i64 rank : stored_.layouts(tensor).ranks()) {
      const auto difference = first_difference(tensor, rank);
      if (!difference) continue;
      if (told_ >= kMostTold) {
        ++told_;
        continue;
      }
      add(tensor, rank,
          fmt::format("rank {} {}", rank,
                      describe(whole_, stored_, *difference, {&layer_, sections})));
    }
  }

  std::optional<PartDifference> first_difference(size_t tensor, i64 rank) const {
    for (const StoredPart& part : part_with_copies(whole_, stored_, tensor, rank)) {
      if (auto difference = part_difference(whole_, stored_, part)) return difference;
    }
    return std::nullopt;
  }

  void add(size_t tensor, i64 rank, const std::string& text) {
    const std::string& name = shards_.tensors[tensor].name;
    if (told_++ == 0) {
      result_.tensor = name;
      result_.rank = rank;
    } else {
      result_.text += "; ";
    }
    if (told_tensors_.insert(tensor).second) result_.text += quote_for_message(name) + ": ";
    result_.text += text;
  }

  const Side& whole_;
  const Side& shards_;
  const Side& stored_;
  const model::Layer& layer_;
  OpDiagnosis result_;
  i64 told_ = 0;
  std::set<size_t> told_tensors_;
};

/// Search order: the step, the steps before it from last to first, then those after it.
std::vector<size_t> order_of_steps(size_t step, size_t steps) {
  std::vector<size_t> order;
  for (size_t i = step + 1; i-- > 0;) order.push_back(i);
  for (size_t i = step + 1; i < steps; ++i) order.push_back(i);
  return order;
}

/// Explains that a layer's bytes are not compared because a tensor has another dtype; empty if all
/// dtypes agree.
std::string other_dtype(const Side& whole, const Side& shards, const model::Layer& layer) {
  for (const ops::BoundOp& op : layer.ops) {
    for (const size_t tensor : stored_behind(shards, op)) {
      const TensorSpec& spec = shards.tensors[tensor];
      const auto found = whole.by_name.find(spec.name);
      if (found == whole.by_name.end()) continue;
      const Dtype expected = whole.tensors[found->second].dtype;
      if (expected == spec.dtype) continue;
      return fmt::format("{}: is {} instead of {}, so that bytes cannot be compared",
                         quote_for_message(spec.name), to_string(spec.dtype), to_string(expected));
    }
  }
  return "";
}

}  // namespace

void diagnose(const Side& whole, const Side& shards, Fault& fault) {
  if (!fault.diagnosis.empty()) return;
  const model::Layer& layer = shards.model->layers.at(fault.layer_index);
  const Side stored = shards.stored();
  for (const size_t step : order_of_steps(fault.step, layer.ops.size())) {
    OpDiagnosis found = OpTelling(whole, shards, stored, layer).tell(layer.ops.at(step));
    if (found.text.empty()) continue;
    const auto other = other_layer(whole, stored, layer, found.rank);
    fault.diagnosis = other ? fmt::format("rank {} holds layer {} where layer {} is to be",
                                          found.rank, *other, layer.number)
                            : std::move(found.text);
    fault.tensor = std::move(found.tensor);
    fault.rank = found.rank;
    return;
  }
  fault.diagnosis = other_dtype(whole, shards, layer);
  if (!fault.diagnosis.empty()) return;
  fault.diagnosis =
      "the bytes are those of the reference: the fault is in the layout or in an exchange "
      "between devices";
}

std::vector<std::string> differences(const Side& whole, const Side& shards, size_t layer) {
  std::vector<std::string> texts;
  const model::Layer& told = shards.model->layers.at(layer);
  const Side stored = shards.stored();
  for (const ops::BoundOp& op : told.ops) {
    OpDiagnosis found = OpTelling(whole, shards, stored, told).tell(op);
    if (!found.text.empty()) texts.push_back(std::move(found.text));
  }
  return texts;
}

}  // namespace shardtool::engine
