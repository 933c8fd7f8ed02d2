#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardtool::format::torch {

/// True for DeepSpeed's name of the model's file of one rank under ZeRO 3,
/// "zero_pp_rank_0_mp_rank_00_model_states.pt": its parameters are empty, and parts of them are in
/// the optimizer's files.
bool is_zero3_model_name(std::string_view name);

/// Says how to get at the weights of a folder of DeepSpeed, by the sorted names of its files
/// (deepspeed/utils/zero_to_fp32.py); empty for other folders.
std::string deepspeed_advice(const std::vector<std::string>& names);

}  // namespace shardtool::format::torch
