#include "lib/api/planning/search/dealt_model.h"

#include "lib/api/planning/virtual_stages.h"

namespace shardtool::api {
namespace {

SearchOptions dealt_options(const TrainSearchOptions& options, i64 virtual_stages) {
  SearchOptions serving;
  serving.plan = options.plan;
  serving.pinned = options.pinned;
  deal_layers(serving.plan.mapping, virtual_stages);
  return serving;
}

}  // namespace

DealtModel::DealtModel(const TrainSearchOptions& options, i64 virtual_stages)
    : virtual_stages_(virtual_stages),
      serving_(dealt_options(options, virtual_stages)),
      served_({options.plan.sources.front()}, serving_) {}

std::vector<std::unique_ptr<DealtModel>> dealt_models(const TrainSearchOptions& options) {
  std::vector<std::unique_ptr<DealtModel>> models;
  for (const i64 virtual_stages : options.virtual_stages)
    models.push_back(std::make_unique<DealtModel>(options, virtual_stages));
  return models;
}

std::vector<DealtReplica> dealt_replicas(const std::vector<std::vector<ServingLayout>>& replicas,
                                         const std::vector<std::unique_ptr<DealtModel>>& models) {
  std::vector<DealtReplica> dealt;
  for (const std::vector<ServingLayout>& layouts : replicas) {
    if (layouts.front().pp == 1) {
      dealt.push_back({layouts, *models.front(), 1});
      continue;
    }
    for (const auto& model : models) dealt.push_back({layouts, *model, model->virtual_stages()});
  }
  return dealt;
}

}  // namespace shardtool::api
