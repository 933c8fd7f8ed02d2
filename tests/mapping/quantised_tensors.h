#pragma once

#include "lib/mapping/quantization.h"
#include "tests/mapping/fixtures.h"

/// A model whose weights are quantised in several ways.
namespace shardtool::mapping {

/// up is cut along its output, down along its input; heads of 64 with 2 KV groups of 4.
inline const std::string kModel = R"({"version": 1, "unused_rule": "ignore",
  "axes": {"mlp": "tp", "heads": {"mesh": "tp", "size": 8, "groups": "kv"}, "kv": {"mesh": "tp", "size": 2, "small": "replicate"},
           "experts": {"mesh": EXPERTS, "size": 4}},
  "rules": [{"match": "**up.weight", "dims": ["mlp", null]}, {"match": "**down.weight", "dims": [null, "mlp"]},
            {"match": "**q.weight", "dims": ["heads*64", null]}, {"match": "**k.weight", "dims": ["kv*64", null]},
            {"match": "**o.weight", "dims": [null, "heads*64"]},
            {"match": "**norm.weight", "dims": [null]},
            {"match": "**experts.gate_up_proj", "dims": ["experts", null, "mlp*2"]},
            {"match": "**experts.down_proj", "dims": ["experts", "mlp", null]}]MORE})";

inline Mapping model(std::string_view mesh, const std::string& more = "") {
  std::string text = kModel;
  text.replace(text.find("MORE"), 4, more);
  text.replace(text.find("EXPERTS"), 7, mesh.starts_with("ep=") ? "\"ep\"" : "null");
  return mapping_of(text);
}

inline Resolution resolved(const std::vector<TensorSpec>& tensors, const std::string& quantization,
                           std::string_view mesh, const std::string& more = "") {
  const ModelConfig config = config_of(R"({"quantization_config": )" + quantization + "}");
  return resolve(with_quantization(model(mesh, more), &config), tensors, &config, over(mesh));
}

inline const std::string kGptq = R"({"quant_method": "gptq", "bits": 4, "group_size": 128})";
inline const std::string kActOrder =
    R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": true})";
inline const std::string kAwq = R"({"quant_method": "awq", "bits": 4, "group_size": 128})";
inline const std::string kFp8Blocks = R"({"quant_method": "fp8", "weight_block_size": [128, 128]})";
inline const std::string kPack =
    R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
  "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 128}}}})";
inline const std::string kFloat =
    R"({"quant_method": "compressed-tensors", "format": "float-quantized",
  "config_groups": {"group_0": {"weights": {"num_bits": 8}}}})";

/// Stored tensors of a weight [n, k] in each family.
inline std::vector<TensorSpec> gptq(const std::string& module, i64 n, i64 k, i64 groups) {
  return {spec(module + ".qweight", {k / 8, n}, Dtype::kI32),
          spec(module + ".qzeros", {groups, n / 8}, Dtype::kI32),
          spec(module + ".scales", {groups, n}, Dtype::kF16),
          spec(module + ".g_idx", {k}, Dtype::kI32)};
}

inline std::vector<TensorSpec> awq(const std::string& module, i64 n, i64 k, i64 groups) {
  return {spec(module + ".qweight", {k, n / 8}, Dtype::kI32),
          spec(module + ".qzeros", {groups, n / 8}, Dtype::kI32),
          spec(module + ".scales", {groups, n}, Dtype::kF16)};
}

inline std::vector<TensorSpec> fp8(const std::string& module, const Shape& weight,
                                   const Shape& scale) {
  return {spec(module + ".weight", weight, Dtype::kF8E4M3),
          spec(module + ".weight_scale_inv", scale, Dtype::kF32)};
}

inline std::vector<TensorSpec> packed(const std::string& module, i64 n, i64 k, i64 groups) {
  return {spec(module + ".weight_packed", {n, k / 8}, Dtype::kI32),
          spec(module + ".weight_scale", {n, groups}, Dtype::kBF16),
          spec(module + ".weight_zero_point", {n / 8, groups}, Dtype::kI32),
          spec(module + ".weight_shape", {2}, Dtype::kI64)};
}

inline Held held_of(const Resolution& resolution, const std::vector<TensorSpec>& tensors,
                    const std::string& name, size_t axis) {
  return held(*at(resolution, tensors, name).layout, axis);
}

}  // namespace shardtool::mapping
