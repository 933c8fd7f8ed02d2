#include "tests/validate/made_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>

#include "kernels/decode/decode.h"
#include "kernels/encode/encode.h"
#include "kernels/field/field.h"
#include "lib/model/weight_scales.h"

namespace shardtool::test {
namespace {

/// Sum of uniform numbers: close enough to a normal distribution.
float random_number(std::uint64_t seed, std::uint64_t i) {
  float sum = 0;
  for (std::uint64_t k = 0; k < 4; ++k) {
    sum += static_cast<float>(kernels::hashed(seed + k, i) >> 40) / static_cast<float>(1 << 24);
  }
  return (sum - 2) * 1.7F;
}

void append(Bytes& bytes, std::uint32_t word, int count) {
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
}

void append_number(Bytes& bytes, float x, Dtype dtype, Narrowing narrowing) {
  auto word = std::bit_cast<std::uint32_t>(x);
  if (dtype == Dtype::kF32) return append(bytes, word, 4);
  if (narrowing == Narrowing::kNearest) word += 0x7fff + ((word >> 16) & 1);
  append(bytes, word >> 16, 2);
}

class WeightMaker {
 public:
  WeightMaker(const ModelSizes& sizes, Narrowing narrowing)
      : sizes_(sizes), narrowing_(narrowing) {}

  void add(const std::string& name, Shape shape, float scale, float around = 0) {
    Tensor& tensor = tensors_[name];
    tensor.spec = {name, sizes_.dtype, shape};
    const std::uint64_t seed = kernels::hashed(sizes_.seed, tensors_.size() * 7919);
    const auto count = static_cast<std::uint64_t>(element_count(shape).value());
    for (std::uint64_t i = 0; i < count; ++i) {
      append_number(tensor.bytes, around + scale * random_number(seed, i), sizes_.dtype,
                    narrowing_);
    }
  }
  void add_linear(const std::string& name, i64 rows, i64 columns, bool has_bias) {
    add(name + ".weight", {rows, columns}, 1 / std::sqrt(static_cast<float>(columns)));
    if (has_bias) add(name + ".bias", {rows}, 0.3F);
  }
  void add_norm(const std::string& name, i64 size) { add(name + ".weight", {size}, 0.3F, 1); }
  Tensors take() { return std::move(tensors_); }

 private:
  const ModelSizes& sizes_;
  Narrowing narrowing_;
  Tensors tensors_;
};

bool is_sparse(const ModelSizes& sizes, i64 layer) {
  return std::find(sizes.sparse_layers.begin(), sizes.sparse_layers.end(), layer) !=
         sizes.sparse_layers.end();
}

void add_feed_forward(WeightMaker& maker, const ModelSizes& sizes, i64 layer,
                      const std::string& mlp) {
  const auto gated = [&](const std::string& name, i64 size) {
    maker.add_linear(name + "gate_proj", size, sizes.hidden, false);
    maker.add_linear(name + "up_proj", size, sizes.hidden, false);
    maker.add_linear(name + "down_proj", sizes.hidden, size, false);
  };
  if (!is_sparse(sizes, layer)) return gated(mlp, sizes.mlp);
  maker.add_linear(mlp + "gate", sizes.experts, sizes.hidden, false);
  for (i64 e = 0; e < sizes.experts; ++e) {
    gated(fmt::format("{}experts.{}.", mlp, e), sizes.expert_mlp);
  }
}

void add_layer(WeightMaker& maker, const ModelSizes& sizes, i64 layer) {
  const std::string root = fmt::format("model.layers.{}.", layer);
  const std::string attention = root + "self_attn.";
  maker.add_norm(root + "input_layernorm", sizes.hidden);
  maker.add_norm(root + "post_attention_layernorm", sizes.hidden);
  const i64 width = sizes.heads * sizes.head_dim;
  const i64 kv_width = sizes.kv_heads * sizes.head_dim;
  maker.add_linear(attention + "q_proj", width, sizes.hidden, sizes.has_biases);
  maker.add_linear(attention + "k_proj", kv_width, sizes.hidden, sizes.has_biases);
  maker.add_linear(attention + "v_proj", kv_width, sizes.hidden, sizes.has_biases);
  maker.add_linear(attention + "o_proj", sizes.hidden, width, sizes.has_biases);
  if (sizes.has_qk_norm) {
    maker.add_norm(attention + "q_norm", sizes.head_dim);
    maker.add_norm(attention + "k_norm", sizes.head_dim);
  }
  add_feed_forward(maker, sizes, layer, root + "mlp.");
}

/// Returns the E4M3 of a number of at most 448: the nearest of all 8-bit values.
std::uint8_t e4m3(float x) {
  constexpr int kBias = 7;
  constexpr float kSteps = 8;
  const float a = std::abs(x);
  const std::uint8_t sign = std::signbit(x) ? 0x80 : 0;
  int exponent = a == 0 ? -kBias + 1 : std::max(-kBias + 1, std::ilogb(a));
  auto mantissa = static_cast<int>(std::lround(std::ldexp(a, -exponent) * kSteps));
  if (mantissa == 16) {
    ++exponent;
    mantissa = 8;
  }
  const int stored = mantissa >= 8 ? (exponent + kBias) * 8 + mantissa - 8 : mantissa;
  return static_cast<std::uint8_t>(sign | stored);
}

float number_at(const Tensor& tensor, i64 i) {
  std::uint32_t word = 0;
  const auto at = static_cast<size_t>(i);
  if (tensor.spec.dtype == Dtype::kF32) {
    std::memcpy(&word, tensor.bytes.data() + 4 * at, 4);
  } else {
    std::uint16_t half = 0;
    std::memcpy(&half, tensor.bytes.data() + 2 * at, 2);
    word = static_cast<std::uint32_t>(half) << 16;
  }
  return std::bit_cast<float>(word);
}

}  // namespace

Tensors made_tensors(const ModelSizes& sizes, Narrowing narrowing) {
  WeightMaker maker(sizes, narrowing);
  maker.add("model.embed_tokens.weight", {sizes.vocab, sizes.hidden}, 1);
  for (i64 layer = 0; layer < sizes.layers; ++layer) add_layer(maker, sizes, layer);
  maker.add_norm("model.norm", sizes.hidden);
  if (!sizes.is_tied) maker.add_linear("lm_head", sizes.vocab, sizes.hidden, false);
  return maker.take();
}

std::string made_config(const ModelSizes& sizes) {
  const bool is_moe = !sizes.sparse_layers.empty();
  const std::string family = !sizes.has_qk_norm ? "llama" : is_moe ? "qwen3_moe" : "qwen3";
  const std::string architecture = !sizes.has_qk_norm ? "LlamaForCausalLM"
                                   : is_moe           ? "Qwen3MoeForCausalLM"
                                                      : "Qwen3ForCausalLM";
  std::vector<i64> dense;
  for (i64 layer = 0; layer < sizes.layers; ++layer) {
    if (!is_sparse(sizes, layer)) dense.push_back(layer);
  }
  const std::string sparse =
      fmt::format(R"("num_experts": {}, "num_experts_per_tok": 2, "moe_intermediate_size": {},
        "norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": [{}],)",
                  sizes.experts, sizes.expert_mlp, fmt::join(dense, ", "));
  return fmt::format(
      R"({{"architectures": ["{}"], "model_type": "{}", "hidden_size": {}, "head_dim": {},
        "num_attention_heads": {}, "num_key_value_heads": {}, "num_hidden_layers": {},
        "intermediate_size": {}, "vocab_size": {}, "hidden_act": "silu", {}
        "attention_bias": {}, "rms_norm_eps": 1e-06, "max_position_embeddings": 64,
        "rope_theta": 10000.0, "tie_word_embeddings": {}}})",
      architecture, family, sizes.hidden, sizes.head_dim, sizes.heads, sizes.kv_heads, sizes.layers,
      sizes.mlp, sizes.vocab, is_moe ? sparse : "", sizes.has_biases, sizes.is_tied);
}

void write_model(const std::string& folder, const ModelSizes& sizes) {
  write_checkpoint(folder, made_tensors(sizes));
  std::ofstream(folder + "/config.json") << made_config(sizes);
}

ModelSizes prototype() {
  ModelSizes sizes;
  sizes.sparse_layers = {1};
  return sizes;
}

Tensors widened(const Tensors& tensors) {
  Tensors wide;
  for (const auto& [name, tensor] : tensors) {
    Tensor& to = wide[name];
    to.spec = {name, Dtype::kF32, tensor.spec.shape};
    const i64 count = element_count(tensor.spec.shape).value();
    for (i64 i = 0; i < count; ++i) {
      append_number(to.bytes, number_at(tensor, i), Dtype::kF32, Narrowing::kNearest);
    }
  }
  return wide;
}

Tensors halved(const Tensors& tensors) {
  Tensors half;
  for (const auto& [name, tensor] : tensors) {
    const i64 count = element_count(tensor.spec.shape).value();
    std::vector<float> numbers(static_cast<size_t>(count));
    std::memcpy(numbers.data(), tensor.bytes.data(), tensor.bytes.size());
    Tensor& stored = half[name];
    stored.spec = {name, Dtype::kF16, tensor.spec.shape};
    stored.bytes.resize(static_cast<size_t>(count * bits(Dtype::kF16) / 8));
    kernels::from_floats(Dtype::kF16, numbers.data(), count,
                         reinterpret_cast<std::byte*>(stored.bytes.data()));
  }
  return half;
}

Tensors quantised(const Tensors& tensors, i64 rows, i64 columns, const std::string& suffix) {
  Tensors stored;
  for (const auto& [name, tensor] : tensors) {
    const Shape& shape = tensor.spec.shape;
    const bool is_matrix = name.find("_proj.weight") != std::string::npos;
    if (!is_matrix) {
      stored[name] = tensor;
      continue;
    }
    Tensor& matrix = stored[name];
    matrix.spec = {name, Dtype::kF8E4M3, shape};
    const std::string scale_name =
        suffix == ".scale" ? model::scale_names(name).back() : name + suffix;
    Tensor& scales = stored[scale_name];
    scales.spec = {
        scale_name, Dtype::kF32, {ceil_div(shape[0], rows), ceil_div(shape[1], columns)}};
    const i64 count = element_count(scales.spec.shape).value();
    for (i64 i = 0; i < count; ++i) {
      append_number(scales.bytes, 0.5F + static_cast<float>(i) / 64, Dtype::kF32,
                    Narrowing::kNearest);
    }
    for (i64 i = 0; i < shape[0] * shape[1]; ++i) {
      matrix.bytes.push_back(e4m3(number_at(tensor, i)));
    }
  }
  return stored;
}

Tensor dequantised(const Tensor& matrix, const Tensor& scales) {
  const Shape& shape = matrix.spec.shape;
  const Shape& blocks = scales.spec.shape;
  const i64 rows = ceil_div(shape[0], blocks[0]);
  const i64 columns = ceil_div(shape[1], blocks[1]);
  Tensor plain{{matrix.spec.name, Dtype::kF32, shape}, {}};
  for (i64 r = 0; r < shape[0]; ++r) {
    for (i64 c = 0; c < shape[1]; ++c) {
      float number = 0;
      float scale = 0;
      const auto at = static_cast<size_t>(r * shape[1] + c);
      kernels::to_floats(matrix.spec.dtype,
                         reinterpret_cast<const std::byte*>(matrix.bytes.data() + at), 1, &number);
      const auto block = static_cast<size_t>(r / rows * blocks[1] + c / columns);
      std::memcpy(&scale, scales.bytes.data() + block * sizeof(float), sizeof(float));
      append_number(plain.bytes, number * scale, Dtype::kF32, Narrowing::kNearest);
    }
  }
  return plain;
}

}  // namespace shardtool::test
