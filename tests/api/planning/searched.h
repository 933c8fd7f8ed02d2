#pragma once

#include <string>

#include "lib/api/plan_search.h"
#include "tests/mapping/models.h"

/// Small models on disk, and searches for their layouts.
namespace shardtool::api::searched {

inline constexpr i64 kPrompt = 48;
inline constexpr i64 kAnswer = 32;

/// A Llama of 4 layers with 4 KV heads in BF16, with rotary frequencies in F32.
const std::string& dense();
/// The same with all tensors in BF16.
const std::string& dense_in_bf16();
/// Returns the model of dense() with the matrices of its layers in square blocks of FP8.
mapping::TinyModel blocks(i64 size = 128);
/// A Mixtral of 2 layers with 4 experts and 4 KV heads.
const std::string& with_experts();

/// Returns a search of 1, 2 and 4 H100 for 8 clients.
SearchOptions options_for(const std::string& path);

/// Hardware on which nothing but GEMMs takes time: a million of operations per microsecond.
plan::HardwareProfile products_alone();

}  // namespace shardtool::api::searched
