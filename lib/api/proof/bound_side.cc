#include "lib/api/proof/bound_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/proof/unpacked_files.h"
#include "lib/api/proof/weight_files.h"
#include "lib/api/transfer/target_layout.h"
#include "lib/base/error.h"
#include "lib/model/live_ops.h"

namespace shardtool::api {
namespace {

using Layouts = std::vector<std::shared_ptr<const layout::Layout>>;

/// Converts the mapping's word for the storage of a sum's bias.
engine::SumBias sum_bias(const std::string& word) {
  if (word.empty() || word == "after_reduction") return engine::SumBias::kAfterReduction;
  return word == "divided" ? engine::SumBias::kDivided : engine::SumBias::kOwnShare;
}

/// Layouts by spec, as stored and as computed with.
struct BothLayouts {
  Layouts stored, computed;
};

/// Tensors that the mapping drops are replicated.
BothLayouts layouts_of(const mapping::Resolution& resolution,
                       const std::vector<TensorSpec>& specs) {
  BothLayouts layouts{Layouts(specs.size()), Layouts(specs.size())};
  const Layouts computed = mapping::computed_layouts(resolution);
  for (size_t i = 0; i < computed.size(); ++i) {
    const mapping::ResolvedTensor& tensor = resolution.tensors[i];
    layouts.stored[tensor.tensor] = tensor.layout;
    layouts.computed[tensor.tensor] = computed[i];
  }
  for (size_t t = 0; t < specs.size(); ++t) {
    if (layouts.stored[t]) continue;
    layouts.stored[t] = std::make_shared<layout::Layout>(
        layout::Layout::replicated(resolution.mesh, specs[t].shape));
    layouts.computed[t] = layouts.stored[t];
  }
  return layouts;
}

/// Holders of tensors whose rows the files have in another order than the model, by index, one per
/// device of the tensor's layout.
using Reordered = std::map<size_t, std::shared_ptr<const index::HolderSet>>;

/// Returns what a device stores of a tensor: its region of the layout, or its holder in `order`.
/// Nullopt for a device without a shard.
std::optional<index::Region> stored_region(const layout::Layout& layout,
                                           const index::HolderSet* order, i64 rank) {
  if (rank >= layout.mesh().size()) return std::nullopt;
  if (order == nullptr) return layout.region(rank);
  const auto& ranks = layout.ranks();
  const auto found = std::ranges::find(ranks, rank);
  if (found == ranks.end()) return std::nullopt;
  return order->region(static_cast<int>(found - ranks.begin()));
}

/// True if every device stores the region of the layout, in its order.
bool has_layouts_order(const LogicalTensor& tensor, const layout::Layout& layout) {
  for (size_t holder = 0; holder < tensor.ranks.size(); ++holder) {
    const auto given = stored_region(layout, nullptr, tensor.ranks[holder]);
    if (given != tensor.side.holders->region(static_cast<int>(holder))) return false;
  }
  return true;
}

/// Returns the tensors with interleaved rows (mapping::Content::interleaved). A merged output,
/// which keeps the mapping, has them in the model's order again.
Reordered reordered_by(const LogicalCheckpoint& shards, const AppliedMapping& applied,
                       const Layouts& stored) {
  Reordered reordered;
  if (!applied.output) return reordered;
  for (const auto& [tensor, unit] : interleaved_units(*applied.output)) {
    if (has_layouts_order(shards.tensors[tensor], *stored[tensor])) continue;
    reordered[tensor] =
        interleaved_holders(stored[tensor]->holders(), unit, applied.specs[tensor].name);
  }
  return reordered;
}

/// Sets the layouts to compute with, and the reader of the shards.
void set_weights(const LogicalCheckpoint& shards, const mapping::Resolution& resolution,
                 BothLayouts layouts, const Reordered& reordered, SideFiles& files) {
  files.mesh = resolution.mesh;
  files.layouts = layouts.computed;
  for (size_t t = 0; t < files.layouts.size(); ++t) {
    files.is_gathered.push_back(layouts.stored[t] != layouts.computed[t] || reordered.contains(t));
  }
  if (std::ranges::find(files.is_gathered, true) == files.is_gathered.end()) {
    files.weights = std::make_unique<WeightFiles>(shards);
  } else {
    auto gathered =
        std::make_unique<GatheredFiles>(shards, std::move(layouts.computed), files.is_gathered);
    std::vector<bool> is_reordered;
    for (size_t t = 0; t < layouts.stored.size(); ++t) {
      is_reordered.push_back(reordered.contains(t));
    }
    files.stored_weights =
        std::make_unique<GatheredFiles>(*gathered, layouts.stored, std::move(is_reordered));
    files.stored_layouts = std::move(layouts.stored);
    files.weights = std::move(gathered);
    files.gathered = resolution.gathered;
  }
}

/// Throws kShapeMismatch unless every device stores the region of its layout.
void require_stored_so(const LogicalCheckpoint& shards, const Layouts& layouts,
                       const Reordered& reordered) {
  for (size_t t = 0; t < layouts.size(); ++t) {
    const LogicalTensor& tensor = shards.tensors[t];
    const auto found = reordered.find(t);
    const index::HolderSet* order = found == reordered.end() ? nullptr : found->second.get();
    for (size_t holder = 0; holder < tensor.ranks.size(); ++holder) {
      const i64 rank = tensor.ranks[holder];
      const auto given = stored_region(*layouts[t], order, rank);
      const index::Region stored = tensor.side.holders->region(static_cast<int>(holder));
      if (given && *given == stored) continue;
      throw Error(ErrorCode::kShapeMismatch,
                  fmt::format("the mapping gives rank {} another shard than the files have", rank))
          .tensor(tensor.spec.name)
          .note("mapping", given ? to_string(*given) : "nothing")
          .note("manifest", to_string(stored))
          .help("leave --mapping and --axes away: the manifest holds those of the split");
    }
  }
}

}  // namespace

bool SideFiles::has_divided_bias() const {
  return std::ranges::find(biases, "divided") != biases.end();
}

SideFiles whole_files(const LogicalCheckpoint& checkpoint) {
  SideFiles files;
  files.specs = checkpoint.specs();
  std::map<Shape, std::shared_ptr<const layout::Layout>> by_shape;  // shared by tensors of the same
                                                                    // shape
  for (const TensorSpec& spec : files.specs) {
    auto& layout = by_shape[spec.shape];
    if (!layout) {
      layout =
          std::make_shared<layout::Layout>(layout::Layout::replicated(mesh::Mesh(), spec.shape));
    }
    files.layouts.push_back(layout);
  }
  files.biases.resize(files.specs.size());
  const auto is_in_order = [](const LogicalTensor& t) { return t.side.holders->is_whole(); };
  if (checkpoint.is_sharded() || !std::ranges::all_of(checkpoint.tensors, is_in_order)) {
    files.weights = std::make_unique<MergedFiles>(checkpoint);
  } else {
    files.weights = std::make_unique<WeightFiles>(checkpoint);
  }
  return files;
}

SideFiles shard_files(const LogicalCheckpoint& shards, const MappingChoice& choice) {
  SideFiles files;
  files.specs = shards.specs();
  MappingChoice own = over_own_mesh(shards, choice);
  own.allow_empty_shards = true;  // shards are as they are; older manifests do not record this
  const AppliedMapping applied = apply_mapping(own, shards);
  BothLayouts layouts = layouts_of(applied.resolution, files.specs);
  const Reordered reordered = reordered_by(shards, applied, layouts.stored);
  require_stored_so(shards, layouts.stored, reordered);
  for (const LogicalTensor& tensor : shards.tensors) {
    files.biases.push_back(tensor.record() == nullptr ? "" : tensor.record()->cut->bias);
  }
  set_weights(shards, applied.resolution, std::move(layouts), reordered, files);
  return files;
}

SideFiles shard_files(const ForeignCheckpoint& foreign) {
  if (!foreign.misfits.empty()) {
    throw Error(ErrorCode::kShapeMismatch, "the shards are not those that the mapping cuts")
        .tensor(foreign.misfits.front().tensor);
  }
  SideFiles files;
  files.specs = foreign.shards.specs();
  for (const mapping::ResolvedTensor& tensor : foreign.resolution.tensors) {
    files.biases.push_back(tensor.by->bias);
  }
  set_weights(foreign.shards, foreign.resolution, layouts_of(foreign.resolution, files.specs), {},
              files);
  return files;
}

BoundSide::BoundSide(std::shared_ptr<const model::Graph> graph, const mapping::ModelConfig& config,
                     SideFiles files)
    : files_(with_unpacked_weights(std::move(files), graph, config)),
      model_(model::bind_model(std::move(graph), config, files_.specs)) {
  model::remove_dead_ops(model_);
  side_.model = &model_;
  side_.config = &config;
  side_.tensors = files_.specs;
  side_.layouts = [this](size_t tensor) -> const layout::Layout& {
    return *files_.layouts[tensor];
  };
  side_.mesh = files_.mesh;
  side_.weights = files_.weights.get();
  side_.unpacked = files_.unpacked;
  side_.stored_weights = files_.stored_weights.get();
  if (side_.stored_weights != nullptr) {
    side_.stored_layouts = [this](size_t tensor) -> const layout::Layout& {
      const auto& stored = files_.stored_layouts;
      return tensor < stored.size() ? *stored[tensor] : *files_.layouts[tensor];
    };
  }
  side_.sum_bias = [this](size_t tensor) { return sum_bias(files_.biases[tensor]); };
  for (size_t t = 0; t < files_.specs.size(); ++t) side_.by_name[files_.specs[t].name] = t;
}

i64 BoundSide::parts() const {
  std::set<size_t> members;
  for (const auto& [weight, made_of] : files_.unpacked) {
    members.insert(made_of.members.begin(), made_of.members.end());
  }
  i64 parts = 0;
  for (size_t t = 0; t < files_.layouts.size(); ++t) {
    if (!members.contains(t)) parts += std::ssize(files_.layouts[t]->ranks());
  }
  return parts;
}

}  // namespace shardtool::api
