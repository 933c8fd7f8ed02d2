#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/checkpoint_files.h"

/// Small models with the tensors of Qwen 3 and Qwen 3 MoE, and random weights that all differ.
namespace shardtool::test {

struct ModelSizes {
  i64 layers = 3;
  i64 hidden = 64;
  i64 heads = 8;
  i64 kv_heads = 2;
  i64 head_dim = 16;  ///< need not equal hidden / heads
  i64 mlp = 128;
  i64 vocab = 96;
  bool has_biases = true;          ///< on q, k, v and o
  bool has_qk_norm = true;         ///< else the model is a Llama
  i64 experts = 4;                 ///< in each sparse layer
  std::vector<i64> sparse_layers;  ///< empty: a dense model
  i64 expert_mlp = 32;
  bool is_tied = false;
  Dtype dtype = Dtype::kBF16;  ///< or kF32
  std::uint64_t seed = 1;
};

/// Rounding from f32 to bf16.
enum class Narrowing { kNearest, kTruncate };

Tensors made_tensors(const ModelSizes& sizes, Narrowing narrowing = Narrowing::kNearest);
std::string made_config(const ModelSizes& sizes);
/// Writes tensors and config.json.
void write_model(const std::string& folder, const ModelSizes& sizes);

/// The model of the experiment in validate's specification: three layers; eight heads of 16, hidden
/// size 64, two KV heads; biases, QK norms, and experts in the second layer.
ModelSizes prototype();

/// Converts to f32, exactly.
Tensors widened(const Tensors& tensors);
/// Rounds f32 to f16.
Tensors halved(const Tensors& tensors);
/// Stores matrices in F8_E4M3 with one f32 scale per block of `rows` x `columns`. The scale's name
/// has the suffix; ".scale" replaces ".weight".
Tensors quantised(const Tensors& tensors, i64 rows, i64 columns, const std::string& suffix);
/// Returns the rounded F32 numbers of such a matrix and its scales.
Tensor dequantised(const Tensor& matrix, const Tensor& scales);

}  // namespace shardtool::test
