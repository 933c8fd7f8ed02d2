#pragma once

#include <span>
#include <string>

#include "lib/base/checked.h"
#include "lib/base/tensor_spec.h"

namespace shardtool::bench {

/// The widths of a Llama 3.1 in BF16: 8 KV heads of 128, vocabulary 128256.
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

/// Writes model.safetensors and config.json into a new folder, with pseudo-random bytes, or with a
/// hole for data (`sparse`). Returns the bytes of the file.
i64 write_llama_checkpoint(const std::string& folder, LlamaSize size, bool sparse);

/// Writes such a checkpoint to FOLDER/whole, in place of what was in FOLDER, and what `tool` splits
/// it into for tp=4 to FOLDER/tp4. Returns the bytes of the one file.
double write_parted_llama(const std::string& tool, const std::string& folder, LlamaSize size,
                          bool sparse);

/// Writes only a header and a hole for these tensors. Returns the bytes of the file.
i64 write_header(const std::string& folder, std::span<const TensorSpec> tensors);

/// Writes only a header and a hole: `tensors` tensors under DeepSeek-V3's names (experts by
/// number).
i64 write_deepseek_header(const std::string& folder, i64 tensors);

/// Writes a checkpoint of `count` matrices [rows, 128] of BF16 with pseudo-random bytes. Returns
/// the bytes of the file.
i64 write_equal_tensors(const std::string& folder, i64 count, i64 rows);

}  // namespace shardtool::bench
