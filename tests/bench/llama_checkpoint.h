#pragma once

#include <span>
#include <string>

#include "lib/base/checked.h"
#include "lib/base/tensor_spec.h"

namespace shardtool::bench {

/// Widths of a Llama 3.1 in BF16: 8 KV heads of 128, vocabulary 128256.
struct LlamaWidths {
  i64 hidden = 0;
  i64 heads = 0;
  i64 mlp = 0;
};
inline constexpr LlamaWidths kLlama8B{4096, 32, 14336};
inline constexpr LlamaWidths kLlama70B{8192, 64, 28672};

/// With 7 layers of kLlama8B (and no output head) the file has 4.1 GB.
struct LlamaSize {
  int layers = 7;
  bool with_head = false;
  LlamaWidths widths = kLlama8B;
};

/// Writes model.safetensors and config.json into a new folder, with pseudo-random data, or with a
/// hole for data (`sparse`). Returns the size of the file.
i64 write_llama_checkpoint(const std::string& folder, LlamaSize size, bool sparse);

/// Replaces FOLDER by such a checkpoint in FOLDER/whole and its split by `tool` for tp=4 in
/// FOLDER/tp4. Returns the size of the unsplit file.
double write_parted_llama(const std::string& tool, const std::string& folder, LlamaSize size,
                          bool sparse);

/// Writes only a header and a hole for these tensors. Returns the size of the file.
i64 write_header(const std::string& folder, std::span<const TensorSpec> tensors);

/// Writes only a header and a hole for `tensors` tensors with DeepSeek-V3's names (experts by
/// number).
i64 write_deepseek_header(const std::string& folder, i64 tensors);

/// Writes a checkpoint of `count` BF16 matrices [rows, 128] with pseudo-random bytes. Returns the
/// size of the file.
i64 write_equal_tensors(const std::string& folder, i64 count, i64 rows);

}  // namespace shardtool::bench
