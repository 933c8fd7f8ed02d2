#include "lib/api/transfer/sources/config_source.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "lib/api/dequantize/dequantize.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/mapping/quantization.h"
#include "lib/model/config_tensors.h"
#include "lib/model/graph/graph_list.h"

namespace shardtool::api {
namespace {

Error not_enough(ErrorCode code, const std::string& what, const std::string& config) {
  return Error(code, what).at({config, 0, 0, ""});
}

/// Returns the graph of the model, which names its weights.
std::shared_ptr<const model::Graph> described_graph(const mapping::ModelConfig& model,
                                                    const std::string& config,
                                                    std::shared_ptr<const model::Graph> own) {
  std::string why_not;
  auto graph = model::find_graph(model, std::move(own), why_not);
  if (graph != nullptr) return graph;
  throw not_enough(ErrorCode::kUnsupported,
                   "config.json alone is planned only for a model with a graph", config)
      .note("found", why_not)
      .help("give the folder with the weights; `shardtool graphs` lists the models with graphs");
}

Dtype described_type(const mapping::ModelConfig& model, const std::string& config) {
  if (const auto dtype = named_float_type(model)) return *dtype;
  throw not_enough(ErrorCode::kConfig, "config.json does not say which type the weights have",
                   config)
      .note("expected", "\"torch_dtype\" or \"dtype\": \"bfloat16\", \"float16\" or \"float32\"")
      .help("add \"torch_dtype\" to it, or give the folder with the weights");
}

void refuse_unknown_storage(const mapping::ModelConfig& model, const std::string& config) {
  const auto tag = mapping::quantization_tag(model);
  if (!tag) return;
  throw not_enough(ErrorCode::kUnsupported,
                   "config.json alone does not say how quantised weights are stored", config)
      .note("found", fmt::format("quantization_config of {}", quote_for_message(*tag)))
      .help("give the folder with the weights, or the config.json of the model in floats");
}

}  // namespace

std::optional<LogicalCheckpoint> open_config_alone(const std::string& location,
                                                   const std::string& config,
                                                   std::shared_ptr<const model::Graph> own) {
  auto part = format::config_without_weights(location);
  if (!part) return std::nullopt;
  const std::string path = config.empty() ? part->config_path : config;
  const mapping::ModelConfig model = mapping::load_config(path);
  refuse_unknown_storage(model, path);
  const auto graph = described_graph(model, path, std::move(own));
  const Dtype dtype = described_type(model, path);
  for (TensorSpec& spec : model::config_tensors(*graph, model, dtype))
    part->tensors.push_back({std::move(spec.name), spec.dtype, std::move(spec.shape)});
  part->warnings.push_back(
      {fmt::format("no weights are read: their names and shapes are those that the graph of {} "
                   "requires by config.json, as {}. Optional biases and tensors that no op reads, "
                   "such as layers that predict further tokens, are not counted",
                   graph->family, dtype_info(dtype).name),
       "", format::Oddity::kOtherEntry});
  std::vector<format::Checkpoint> parts;
  parts.push_back(*std::move(part));
  LogicalCheckpoint source = join_parts(std::move(parts));
  source.is_config_alone = true;
  return source;
}

}  // namespace shardtool::api
