#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lib/base/checked.h"

namespace shardtool::format::gguf {

/// Storage type of a tensor: consecutive elements of a row share a block. Plain types have blocks
/// of one element. Source: GGML_QUANT_SIZES in gguf/constants.py of gguf 0.19.0.
struct BlockType {
  std::uint32_t id = 0;
  std::string_view name;
  i64 elements = 1;  ///< per block
  i64 bytes = 0;     ///< per block
};

/// All known types, by id.
std::span<const BlockType> block_types();
/// Returns nullptr for an unknown id.
const BlockType* find_block_type(std::uint32_t id);

}  // namespace shardtool::format::gguf
