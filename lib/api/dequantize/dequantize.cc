#include "lib/api/dequantize/dequantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "kernels/cast/cast.h"
#include "lib/api/dequantize/quantised_weight.h"
#include "lib/api/dequantize/unpacked_tensor.h"
#include "lib/base/error.h"
#include "lib/base/name_map.h"
#include "lib/base/text.h"
#include "lib/index/holder_set_pool.h"
#include "lib/model/weight_scales.h"

namespace shardtool::api {
namespace {

/// Ends of the names of scales that belong to activations and caches.
constexpr auto kActivationScales = std::to_array<std::string_view>(
    {".input_scale", ".input_scale_ub", ".input_global_scale", ".input_zero_point",
     ".activation_scale", ".k_scale", ".v_scale", ".kv_scale", ".q_scale", ".prob_scale"});

/// Numbers that only quantised computing uses.
bool is_activation_scale(const TensorSpec& spec) {
  return element_count(spec.shape) == 1 &&
         std::any_of(kActivationScales.begin(), kActivationScales.end(),
                     [&](std::string_view end) { return spec.name.ends_with(end); });
}

std::optional<Dtype> named_type(std::string_view name) {
  constexpr std::string_view kTorch = "torch.";
  if (name.starts_with(kTorch)) name.remove_prefix(kTorch.size());
  if (name == "bfloat16") return Dtype::kBF16;
  if (name == "float16" || name == "half") return Dtype::kF16;
  if (name == "float32" || name == "float") return Dtype::kF32;
  return std::nullopt;
}

mapping::ModelConfig require_config(const LogicalCheckpoint& checkpoint, const std::string& path) {
  if (!path.empty()) return mapping::load_config(path);
  if (const auto config = checkpoint.config()) return *config;
  throw Error(ErrorCode::kUnsupported, "there is no config.json that says how weights are stored")
      .note("checkpoint", checkpoint.parts.front().path)
      .help("give it with --model-config, or put it beside the weights");
}

/// Throws for a float of 8 bits that stays: its value needs a scale that is not there.
void refuse_without_scale(const TensorSpec& spec) {
  const bool is_small = dtype_info(spec.dtype).kind == DtypeKind::kFloat && bits(spec.dtype) <= 8;
  if (!is_small) return;
  throw Error(ErrorCode::kUnsupported, "a quantised weight has no scales beside it")
      .tensor(spec.name)
      .note("found", std::string(to_string(spec.dtype)))
      .note("expected", "scales under one of the names that its quantisation gives them");
}

/// Throws for integers with scales beside them that stay, by names that other forms of quantised
/// weights have: config.json names another form.
void refuse_other_form(const TensorSpec& spec, const TensorsByName& all) {
  if (dtype_info(spec.dtype).kind == DtypeKind::kFloat) return;
  for (const std::string& name : model::scale_names(spec.name)) {
    if (!all.contains(name)) continue;
    throw Error(ErrorCode::kUnsupported, "a quantised weight is not stored as config.json says")
        .tensor(spec.name)
        .note("found", fmt::format("{} beside '{}'", to_string(spec.dtype), name))
        .help("take quantization_config of the config.json that these weights came with");
  }
}

/// Throws for a tensor that would stay, and is quantised.
void refuse_quantised(const LogicalCheckpoint& checkpoint, const NameMap<bool>& members) {
  const TensorsByName all = tensors_by_name(checkpoint);
  for (const LogicalTensor& tensor : checkpoint.tensors) {
    if (members.contains(tensor.spec.name) || is_activation_scale(tensor.spec)) continue;
    refuse_without_scale(tensor.spec);
    refuse_other_form(tensor.spec, all);
  }
}

/// Throws for a tensor that would stay with the name of an unpacked weight, or as scales of it.
void refuse_second_form(const LogicalCheckpoint& checkpoint,
                        std::span<const QuantisedWeight> weights, const NameMap<bool>& members) {
  const TensorsByName all = tensors_by_name(checkpoint);
  for (const QuantisedWeight& weight : weights) {
    const std::string& unpacked = weight.spec.name;
    for (const std::string& name : {unpacked, unpacked + "_scale", unpacked + "_scale_inv"}) {
      if (members.contains(name) || !all.contains(name)) continue;
      throw Error(ErrorCode::kUnsupported, "a weight is stored in two forms")
          .tensor(unpacked)
          .note("found", fmt::format("'{}' beside '{}' and '{}'", quote_for_message(name),
                                     quote_for_message(weight.codes().tensor.spec.name),
                                     quote_for_message(weight.scales().tensor.spec.name)))
          .help("keep the tensors of one form");
    }
  }
}

LogicalTensor unpacked(const QuantisedWeight& weight, Dtype dtype, index::HolderSetPool& pool) {
  LogicalTensor tensor;
  auto computed = std::make_shared<const UnpackedTensor>(weight, dtype);
  tensor.spec = computed->weight().spec;
  tensor.side = {pool.whole(tensor.spec.shape), {weight.codes().tensor.side.slots.front()}};
  tensor.unpacked = std::move(computed);
  return tensor;
}

}  // namespace

std::optional<Dtype> named_float_type(const mapping::ModelConfig& config) {
  for (const char* path :
       {"torch_dtype", "dtype", "text_config.torch_dtype", "text_config.dtype"}) {
    const auto type = named_type(config.text(path).value_or(""));
    if (type) return type;
  }
  return std::nullopt;
}

void dequantize(LogicalCheckpoint& checkpoint, const std::string& config_path,
                std::optional<Dtype> to) {
  const mapping::ModelConfig config = require_config(checkpoint, config_path);
  const Dtype dtype = to ? *to : named_float_type(config).value_or(kDefaultFloat);
  const std::vector<QuantisedWeight> weights = quantised_weights(checkpoint, config);
  if (weights.empty()) {
    throw Error(ErrorCode::kUnsupported, "no weight is stored as config.json says")
        .note("said by", "quantization_config in " + config.file())
        .help("leave out --dequantize if all weights are floats");
  }
  index::HolderSetPool pool;
  std::vector<LogicalTensor> tensors;
  NameMap<bool> members;
  for (const QuantisedWeight& weight : weights) {
    for (const StoredMember& member : weight.members)
      members.emplace(member.tensor.spec.name, true);
    tensors.push_back(unpacked(weight, dtype, pool));
  }
  refuse_quantised(checkpoint, members);
  refuse_second_form(checkpoint, weights, members);
  for (LogicalTensor& tensor : checkpoint.tensors) {
    if (members.contains(tensor.spec.name)) {
      checkpoint.stored.push_back(std::move(tensor));
    } else if (is_activation_scale(tensor.spec)) {
      checkpoint.left_out.push_back(tensor.spec.name);
    } else {
      tensors.push_back(std::move(tensor));
    }
  }
  checkpoint.tensors = std::move(tensors);
  checkpoint.is_dequantized = true;
}

}  // namespace shardtool::api
