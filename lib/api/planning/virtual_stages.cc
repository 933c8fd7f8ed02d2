#include "lib/api/planning/virtual_stages.h"

#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/model/flow/handoff.h"

namespace shardtool::api {
namespace {

Error not_in_rounds(i64 stages, i64 virtual_stages) {
  if (stages < 2) {
    return std::move(Error(ErrorCode::kMesh, "virtual stages need a pipeline of two ranks or more")
                         .help("give --pp, or leave out --virtual-stages"));
  }
  return std::move(
      Error(ErrorCode::kMesh,
            fmt::format("the layers are not on {} in {}", plural(stages, "pipeline rank"),
                        plural(virtual_stages, "round")))
          .help("--virtual-stages places the layers that the mapping cuts by its axis 'layers', "
                "without those of an encoder; a mapping may say {\"owners\": {\"rounds\": 2}}"));
}

}  // namespace

void deal_layers(MappingChoice& choice, i64 virtual_stages) {
  if (virtual_stages == 1) return;
  choice.settings.push_back(
      {"axes.layers.owners", fmt::format(R"({{"rounds": {}}})", virtual_stages)});
}

std::vector<i64> virtual_stages_of(const model::Model& model,
                                   std::span<const std::vector<i64>> running, i64 virtual_stages) {
  std::vector<i64> of(running.size(), 0);
  if (virtual_stages == 1) return of;
  const i64 stages = model::pipeline_stages(model, running);
  if (stages < 2) throw not_in_rounds(stages, virtual_stages);
  std::vector<std::span<const i64>> runs;  // devices of consecutive layers
  bool is_dealt = true;
  for (size_t layer = 0; layer < running.size(); ++layer) {
    if (runs.empty() || !model::have_common(runs.back(), running[layer])) {
      const i64 before = std::ssize(runs) - stages;
      is_dealt &=
          before < 0 || model::have_common(runs[static_cast<size_t>(before)], running[layer]);
      runs.emplace_back(running[layer]);
    }
    of[layer] = (std::ssize(runs) - 1) / stages;
  }
  if (!is_dealt || std::ssize(runs) != stages * virtual_stages)
    throw not_in_rounds(stages, virtual_stages);
  return of;
}

}  // namespace shardtool::api
