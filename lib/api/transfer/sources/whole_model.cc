#include "lib/api/transfer/sources/whole_model.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/model/bind.h"
#include "lib/model/graph/graph_list.h"
#include "lib/model/packed_format.h"

namespace shardtool::api {
namespace {

/// The tensors with packed weights as the matrices that they hold, under the names of these.
std::vector<TensorSpec> with_unpacked(std::vector<TensorSpec> specs,
                                      const mapping::ModelConfig& config) {
  const auto leave_out = [](const Error&, const std::string&) {};  // an op then lacks its weight
  for (model::PackedWeight& weight : model::packed_weights(config, specs, leave_out)) {
    specs[weight.codes] = std::move(weight.spec);
  }
  return specs;
}

}  // namespace

void require_whole_model(LogicalCheckpoint& read, const mapping::ModelConfig& config) {
  const std::vector<TensorSpec> specs = with_unpacked(read.specs(), config);
  std::string why_not;
  const auto graph = model::find_graph(config, why_not);
  if (graph == nullptr) {
    read.parts.front().warnings.push_back(
        {fmt::format("tensors may be missing: which ones the model has is not known, {}", why_not),
         "", format::Oddity::kOtherEntry});
    return;
  }
  model::MissingTensors missing;
  model::bind_model(graph, config, specs, model::Misfits::kLeaveOut, &missing);
  if (missing.count == 0) return;
  throw Error(ErrorCode::kCoverage, "the files lack tensors of the model")
      .at({config.file(), 0, 0, {}})
      .tensor(quote_for_message(missing.first))
      .note("found", fmt::format("{} of the model", plural(std::ssize(specs), "tensor")))
      .note("expected",
            fmt::format("{} more, of which this is the first", plural(missing.count, "tensor")))
      .help("look for the files of the other ranks and pipeline stages")
      .help("take the config.json of this model: it says how many layers there are");
}

LogicalCheckpoint open_model_in_layout(const LayoutSource& source) {
  LogicalCheckpoint read = open_in_layout(source);
  const auto config = source.config.empty() ? read.config() : read.load_config(source.config);
  if (config) require_whole_model(read, *config);
  return read;
}

}  // namespace shardtool::api
