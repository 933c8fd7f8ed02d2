#include "lib/api/planning/recurrent_states.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "lib/api/transfer/placed_tensors.h"
#include "lib/model/bind.h"
#include "lib/model/graph/graph_list.h"
#include "lib/plan/byte_count.h"

namespace shardtool::api {
namespace {

constexpr i64 kStateBits = 32;

/// Whether a layer keeps anything but attention's keys and values.
bool has_recurrence(const model::Alternatives& ways) {
  return std::ranges::any_of(ways, [](const model::Way& way) {
    return std::ranges::any_of(way.ops, [](const model::Op& op) {
      return std::holds_alternative<ops::Recurrence>(op.kind) ||
             std::holds_alternative<ops::Convolve>(op.kind);
    });
  });
}

bool has_recurrence(const model::Graph& graph) {
  for (const model::Stack& stack : graph.stacks) {
    for (const model::Block& block : stack.blocks) {
      for (const model::Alternatives& ways : block.stretches) {
        if (has_recurrence(ways)) return true;
      }
    }
  }
  return false;
}

/// Adds up what every device keeps of one sequence.
class Count {
 public:
  Count(const model::Model& bound, const PlacedTensors& placed, i64 n_devices, int bits)
      : model_(bound), placed_(placed), bits_(bits), bytes_(static_cast<size_t>(n_devices), 0) {}

  std::vector<i64> of_all_layers() && {
    for (const model::Layer& layer : model_.layers) {
      for (const model::BoundOp& op : layer.ops) add(op);
    }
    return std::move(bytes_);
  }

 private:
  void add(const model::BoundOp& op) {
    if (const auto* convolve = std::get_if<ops::Convolve>(&op.op->kind)) {
      add_per_row({op.weights.front().front(), 0}, model_.size(convolve->taps) - 1, bits_);
    } else if (std::holds_alternative<ops::Decay>(op.op->kind) ||
               std::holds_alternative<ops::Fade>(op.op->kind)) {
      heads_of_[op.op->out.front()] = {op.weights.front().front(),
                                       model::features_axis(op.op->weights.front())};
    } else if (const auto* recurrence = std::get_if<ops::Recurrence>(&op.op->kind)) {
      constexpr size_t kDecays = 3;
      const i64 state =
          plan::times(model_.size(recurrence->key_dim), model_.size(recurrence->value_dim));
      add_per_row(heads_of_.at(op.op->in[kDecays]), state, kStateBits);
    }
  }

  /// An axis of a tensor.
  struct Rows {
    size_t tensor = 0;
    size_t axis = 0;
  };

  /// For every one of the rows that a device has.
  void add_per_row(const Rows& rows_of, i64 elements, i64 bits) {
    const layout::Layout& layout = *placed_.layouts[rows_of.tensor];
    const auto& ranks = layout.ranks();
    for (size_t h = 0; h < ranks.size(); ++h) {
      const i64 rows = layout.holders().region(static_cast<int>(h))[rows_of.axis].image_size();
      plan::add_bytes(bytes_[static_cast<size_t>(ranks[h])],
                      plan::times(plan::times(rows, elements), bits) / 8);
    }
  }

  const model::Model& model_;
  const PlacedTensors& placed_;
  i64 bits_;
  std::vector<i64> bytes_;
  std::map<std::string, Rows> heads_of_;  ///< a value of decays -> what has a row for each head
};

/// Whether the model has what nothing but a recurrence stores: how fast its states decay.
bool stores_decays(const AppliedMapping& applied) {
  return std::any_of(applied.specs.begin(), applied.specs.end(),
                     [](const TensorSpec& tensor) { return tensor.name.ends_with(".A_log"); });
}

}  // namespace

RecurrentStates recurrent_states(const mapping::ModelConfig* config,
                                 std::shared_ptr<const model::Graph> own,
                                 const AppliedMapping& applied, int bits) {
  RecurrentStates states;
  std::string without_graph;
  const auto graph =
      config == nullptr ? nullptr : model::find_graph(*config, std::move(own), without_graph);
  if (graph == nullptr && stores_decays(applied)) {
    states.why_not = config == nullptr ? "there is no config.json" : without_graph;
  }
  if (graph == nullptr || !has_recurrence(*graph)) return states;
  const PlacedTensors placed = placed_tensors(applied);
  try {
    const model::Model bound = model::bind_model(graph, *config, placed.specs);
    states.bytes = Count(bound, placed, applied.resolution.mesh.size(), bits).of_all_layers();
  } catch (const Error& error) {
    const auto why_not = why_not_this_model(error);
    if (!why_not) throw;
    states.why_not = *why_not;
  }
  return states;
}

}  // namespace shardtool::api
