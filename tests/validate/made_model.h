#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/checkpoint_files.h"

/// Small models with the tensors of Qwen 3 and Qwen 3 MoE: random weights that a run can tell from
/// each other.
namespace shardtool::test {

struct ModelSizes {
  i64 layers = 3;
  i64 hidden = 64;
  i64 heads = 8;
  i64 kv_heads = 2;
  i64 head_dim = 16;  ///< heads * head_dim need not be hidden
  i64 mlp = 128;
  i64 vocab = 96;
  bool has_biases = true;          ///< of q, k, v and o
  bool has_qk_norm = true;         ///< else a llama
  i64 experts = 4;                 ///< of the layers in the list
  std::vector<i64> sparse_layers;  ///< none: a dense model
  i64 expert_mlp = 32;
  bool is_tied = false;
  Dtype dtype = Dtype::kBF16;  ///< or kF32
  std::uint64_t seed = 1;
};

/// How f32 becomes bf16.
enum class Narrowing { kNearest, kTruncate };

Tensors made_tensors(const ModelSizes& sizes, Narrowing narrowing = Narrowing::kNearest);
std::string made_config(const ModelSizes& sizes);
/// Writes tensors and config.json.
void write_model(const std::string& folder, const ModelSizes& sizes);

/// The model of the measured experiment of validate's specification: three layers, eight heads of
/// 16 over a hidden size of 64, two KV heads, biases, QK norms, and experts in the second layer.
ModelSizes prototype();

/// The same numbers in f32, exactly.
Tensors widened(const Tensors& tensors);
/// Numbers in f32 as the nearest in f16.
Tensors halved(const Tensors& tensors);
/// Matrices in F8_E4M3 with one f32 scale per block of `rows` x `columns`, named with the suffix,
/// or with ".scale" instead of ".weight".
Tensors quantised(const Tensors& tensors, i64 rows, i64 columns, const std::string& suffix);
/// The F32 numbers of such a matrix and its scales, rounded.
Tensor dequantised(const Tensor& matrix, const Tensor& scales);

}  // namespace shardtool::test
