#include "lib/api/planning/search/training_search.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/api/planning/search/dealt_model.h"
#include "lib/api/planning/search/layout_space.h"
#include "lib/api/planning/search/replica_training.h"
#include "lib/api/planning/search/trained_replica.h"
#include "lib/api/planning/search/training_choice.h"
#include "lib/base/error.h"
#include "lib/exec/workers.h"

namespace shardtool::api {
namespace {

Error no_training(const std::string& what, const std::string& help) {
  return std::move(Error(ErrorCode::kUsage, what).help(help));
}

void check(const TrainSearchOptions& options) {
  options.plan.device.check();
  if (!options.plan.hardware)
    throw no_training("a search needs hardware", "give --profile; `plan profile list` lists them");
  if (options.plan.sources.size() != 1)
    throw no_training("a search for training is one of a single checkpoint", "give one MODEL");
  if (options.devices.empty())
    throw no_training("a search needs numbers of devices", "for example --devices 8,16,64");
  if (options.virtual_stages.empty() || std::ranges::min(options.virtual_stages) < 1)
    throw no_training("a rank of a pipeline has at least one virtual stage",
                      "for example --virtual-stages 1,2,4");
  if (options.sequence < 1 || options.batch < 1) {
    throw no_training(
        "a search for training needs the tokens of a sequence and the sequences of a "
        "step",
        "for example --sequence 4096 --batch 256");
  }
}

/// Prices the layouts of one replica.
FoundTraining found_with(const TrainSearchOptions& options, const DealtReplica& of) {
  const std::vector<ServingLayout>& layouts = of.layouts;
  FoundTraining found;
  found.under.resize(options.smaller_budgets.size());
  try {
    const TrainedReplica replica(of.model.served(), layouts.front(), of.virtual_stages);
    price_training(options, replica, layouts, found);
  } catch (const Error& error) {
    const char* const constraint = constraint_of(error);
    if (constraint == nullptr) throw;
    for (const ServingLayout& layout : layouts)
      found.report.refused.push_back(
          {{layout, 0, 1, false, of.virtual_stages}, constraint, error.what()});
  }
  return found;
}

/// Returns tokens per second and device if a device did nothing but products, and read weights once
/// for the largest micro-batches of so many groups: every other way does as much.
double ideal_tokens(const TrainSearchOptions& options, const ServedModel& model, i64 groups) {
  TrainingWay way;
  way.micro_batch = std::ranges::max(options.micro_batches) * groups;
  double products = 0;
  for (const auto& layer : TrainedReplica(model, {}).forward(options, way))
    products += layer.products;
  const double tokens = static_cast<double>(way.micro_batch * options.sequence);
  return tokens / (3 * products) * kStepUsPerSecond;
}

}  // namespace

TrainSearchReport search_training(const TrainSearchOptions& options) {
  check(options);
  const std::vector<std::unique_ptr<DealtModel>> models = dealt_models(options);
  const ServedModel& model = models.front()->served();
  const auto replicas = replicas_of(layouts_of_search(options.devices, model.limits()));
  const auto dealt = dealt_replicas(replicas, models);
  std::vector<FoundTraining> parts(dealt.size());
  std::atomic<size_t> next = 0;
  exec::run_workers(search_threads(dealt.size()), [&](const std::atomic<bool>& stop) {
    for (size_t i = next++; i < dealt.size() && !stop; i = next++)
      parts[i] = found_with(options, dealt[i]);
  });
  FoundTraining found;
  found.under.resize(options.smaller_budgets.size());
  for (FoundTraining& part : parts) found.add(std::move(part));
  TrainSearchReport& report = found.report;
  for (auto& [layout, reason] : too_deep_layouts(options.devices, model.limits()))
    report.refused.push_back({{layout}, "cut", std::move(reason)});
  report.warnings = model.warnings();
  i64 most_groups = 1;
  for (const auto& layouts : replicas) most_groups = std::max(most_groups, layouts.front().ep);
  report.bound = ideal_tokens(options, model, most_groups);
  choose(report);
  if (report.optimum) {
    report.memory_costs = std::max(0.0, found.unlimited / report.value - 1);
    found.under.emplace_back(report.rows[*report.optimum]);
    report.front = front_of(found.under);
  }
  return std::move(report);
}

}  // namespace shardtool::api
