#include "shardtool/api/bound_side.h"

#include <fmt/format.h>

#include <map>

#include "shardtool/api/plan_reshard.h"
#include "shardtool/api/weight_files.h"
#include "shardtool/base/error.h"

namespace shardtool::api {
namespace {

using Layouts = std::vector<std::shared_ptr<const layout::Layout>>;

/// How a bias of a sum is stored, by the manifest's word for it.
engine::SumBias sum_bias(const LogicalTensor& tensor) {
  const bool is_own = tensor.record != nullptr && !tensor.record->bias.empty() &&
                      tensor.record->bias != "after_reduction";
  return is_own ? engine::SumBias::kOwnShare : engine::SumBias::kAfterReduction;
}

/// Throws kShapeMismatch unless every device stores what its layout gives it.
void require_stored_so(const LogicalCheckpoint& shards, const Layouts& layouts) {
  for (size_t t = 0; t < layouts.size(); ++t) {
    const LogicalTensor& tensor = shards.tensors[t];
    for (size_t holder = 0; holder < tensor.ranks.size(); ++holder) {
      const i64 rank = tensor.ranks[holder];
      const auto given = rank < layouts[t]->mesh().size() ? layouts[t]->region(rank) : std::nullopt;
      const index::Region stored = tensor.side.holders->region(static_cast<int>(holder));
      if (given && *given == stored) continue;
      throw Error(ErrorCode::kShapeMismatch,
                  fmt::format("the mapping gives rank {} another part than the shards have", rank))
          .tensor(tensor.spec.name)
          .note("mapping", given ? to_string(*given) : "nothing")
          .note("manifest", to_string(stored))
          .help("leave --mapping away: the manifest holds the one of the split");
    }
  }
}

}  // namespace

SideFiles whole_files(const LogicalCheckpoint& checkpoint) {
  SideFiles files;
  files.specs = checkpoint.specs();
  std::map<Shape, std::shared_ptr<const layout::Layout>> by_shape;  // tensors of one share theirs
  for (const TensorSpec& spec : files.specs) {
    auto& layout = by_shape[spec.shape];
    if (!layout) {
      layout =
          std::make_shared<layout::Layout>(layout::Layout::replicated(mesh::Mesh(), spec.shape));
    }
    files.layouts.push_back(layout);
  }
  files.sum_biases.assign(files.specs.size(), engine::SumBias::kAfterReduction);
  if (checkpoint.is_sharded()) {
    files.weights = std::make_unique<MergedFiles>(checkpoint);
  } else {
    files.weights = std::make_unique<WeightFiles>(checkpoint);
  }
  return files;
}

SideFiles shard_files(const LogicalCheckpoint& shards, const MappingChoice& choice) {
  SideFiles files;
  files.specs = shards.specs();
  const AppliedMapping applied = apply_mapping(base_choice(shards, choice), shards);
  files.mesh = applied.resolution.mesh;
  files.layouts.resize(files.specs.size());
  for (const mapping::ResolvedTensor& tensor : applied.resolution.tensors) {
    files.layouts[tensor.tensor] = tensor.layout;
  }
  for (size_t t = 0; t < files.layouts.size(); ++t) {
    if (files.layouts[t]) continue;
    files.layouts[t] = std::make_shared<layout::Layout>(
        layout::Layout::replicated(files.mesh, files.specs[t].shape));
  }
  require_stored_so(shards, files.layouts);
  for (const LogicalTensor& tensor : shards.tensors) files.sum_biases.push_back(sum_bias(tensor));
  files.weights = std::make_unique<WeightFiles>(shards);
  return files;
}

BoundSide::BoundSide(std::shared_ptr<const model::Graph> graph, const mapping::ModelConfig& config,
                     SideFiles files)
    : files_(std::move(files)), model_(model::bind_model(std::move(graph), config, files_.specs)) {
  side_.model = &model_;
  side_.config = &config;
  side_.tensors = files_.specs;
  side_.layouts = [this](size_t tensor) -> const layout::Layout& {
    return *files_.layouts[tensor];
  };
  side_.mesh = files_.mesh;
  side_.weights = files_.weights.get();
  side_.sum_bias = [this](size_t tensor) { return files_.sum_biases[tensor]; };
  for (size_t t = 0; t < files_.specs.size(); ++t) side_.by_name[files_.specs[t].name] = t;
}

}  // namespace shardtool::api
