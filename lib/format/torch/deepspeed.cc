#include "lib/format/torch/deepspeed.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardtool::format::torch {
namespace {

constexpr std::string_view kModelStates = "_model_states.pt";
constexpr std::string_view kOptimizerStates = "_optim_states.pt";

bool is_model_name(std::string_view name) {
  return name.starts_with("mp_rank_") && name.ends_with(kModelStates);
}

bool is_optimizer_name(std::string_view name) {
  return name.find("zero_pp_rank_") != name.npos && name.ends_with(kOptimizerStates);
}

}  // namespace

bool is_zero3_model_name(std::string_view name) {
  return name.starts_with("zero_pp_rank_") && name.ends_with(kModelStates);
}

std::string deepspeed_advice(const std::vector<std::string>& names) {
  if (std::ranges::any_of(names, is_zero3_model_name)) {
    return "these are DeepSpeed's files of ZeRO 3, of which each optimizer's file has a shard of "
           "every weight: run the zero_to_fp32.py that DeepSpeed put into the folder above first. "
           "A universal checkpoint, which ds_to_universal.py makes of them, is not read";
  }
  const auto model = std::ranges::find_if(names, is_model_name);
  const bool is_deepspeed = model != names.end() && std::ranges::any_of(names, is_optimizer_name);
  if (!is_deepspeed) return {};
  if (std::ranges::count_if(names, is_model_name) > 1) {
    return "these are DeepSpeed's files of several model-parallel ranks, which are not joined: "
           "save the unsharded model where it was trained, such as by save_16bit_model";
  }
  return fmt::format(
      "these are DeepSpeed's files: FOLDER/{}#module has the weights; the others "
      "have the optimizer",
      *model);
}

}  // namespace shardtool::format::torch
