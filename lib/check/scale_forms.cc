#include "lib/check/scale_forms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/text.h"
#include "lib/mapping/quantization.h"
#include "lib/model/packed_extents.h"
#include "lib/model/packed_format.h"

namespace shardtool::check {
namespace {

using shardtool::to_string;

/// Rows and columns of a weight per scale.
using Block = std::pair<i64, i64>;

/// Returns [rows, columns], both positive.
std::optional<Block> parsed_block(const nlohmann::json* size) {
  if (size == nullptr || !size->is_array() || size->size() != 2) return std::nullopt;
  if (!(*size)[0].is_number_integer() || !(*size)[1].is_number_integer()) return std::nullopt;
  const Block block((*size)[0].get<i64>(), (*size)[1].get<i64>());
  if (block.first < 1 || block.second < 1) return std::nullopt;
  return block;
}

/// Block of a block-quantised model: quantization_config.weight_block_size.
std::optional<Block> block_of(const mapping::ModelConfig& config) {
  return parsed_block(config.find("quantization_config.weight_block_size"));
}

/// Returns a finding about scales that do not fit their weight.
Finding wrong_scales(const CheckedModel& model, const TensorSpec& scales, std::string message,
                     std::string found, std::string expected) {
  return {.rule = CheckRule::kScaleShape,
          .message = std::move(message),
          .file = model.config_file,
          .tensor = scales.name,
          .found = std::move(found),
          .expected = std::move(expected),
          .fix = "take weights, scales and config.json from the same model"};
}

void check_scale_shape(const CheckedModel& model, const TensorSpec& weight, const TensorSpec& scale,
                       Block block, Findings& findings) {
  if (weight.shape.size() != 2) return;
  const Shape expected{ceil_div(weight.shape[0], block.first),
                       ceil_div(weight.shape[1], block.second)};
  if (scale.shape == expected) return;
  findings.add(wrong_scales(model, scale,
                            fmt::format("'{}' has another number of blocks", weight.name),
                            to_string(scale.shape),
                            fmt::format("{}: blocks of {} x {} in {}", to_string(expected),
                                        block.first, block.second, to_string(weight.shape))));
}

/// Axis that tensor parallelism cuts, by the usual names of projections.
std::optional<size_t> usual_cut(std::string_view name) {
  constexpr auto kRows = std::to_array<std::string_view>(
      {".gate_proj.", ".up_proj.", ".q_proj.", ".k_proj.", ".v_proj.", ".q_b_proj.", ".kv_b_proj.",
       ".w1.", ".w3.", ".wq_b.", ".wo_a."});
  constexpr auto kColumns =
      std::to_array<std::string_view>({".down_proj.", ".o_proj.", ".w2.", ".wo_b."});
  const auto names = [name](std::string_view part) { return name.find(part) != name.npos; };
  if (std::any_of(kRows.begin(), kRows.end(), names)) return 0;
  if (std::any_of(kColumns.begin(), kColumns.end(), names)) return 1;
  return std::nullopt;
}

/// Common sizes for which every part is whole blocks, and those for which it is not.
struct LegalSizes {
  std::vector<i64> fit;
  std::vector<i64> straddle;
};

LegalSizes legal_sizes(i64 extent, i64 block) {
  LegalSizes sizes;
  for (const i64 tp : {2, 4, 8, 16, 32, 64}) {
    const bool is_whole = extent % tp == 0 && extent / tp % block == 0;
    (is_whole ? sizes.fit : sizes.straddle).push_back(tp);
  }
  return sizes;
}

/// Notes which sizes fit the blocks, once per kind of tensor.
class BlockTable {
 public:
  BlockTable(const CheckedModel& model, Findings& findings) : model_(model), findings_(findings) {}

  void note(const TensorSpec& tensor, size_t axis, i64 extent, i64 block) {
    constexpr i64 kLargestCommon = 8;
    const LegalSizes sizes = legal_sizes(extent, block);
    if (sizes.straddle.empty() || sizes.straddle.front() > kLargestCommon) return;
    const std::string_view name = tensor.name;
    const size_t leaf = name.rfind('.', name.rfind('.') - 1);
    if (!seen_.insert({std::string(name.substr(leaf + 1)), extent}).second) return;
    findings_.add(
        {.rule = CheckRule::kBlockSizes,
         .message = fmt::format("axis {} of {} in blocks of {}: equal shards are whole blocks for "
                                "tp {}, not for tp {}",
                                axis, extent, block,
                                sizes.fit.empty() ? std::string("1 alone")
                                                  : fmt::format("{}", fmt::join(sizes.fit, " ")),
                                fmt::join(sizes.straddle, " ")),
         .file = model_.config_file,
         .tensor = tensor.name,
         .axis = static_cast<int>(axis),
         .fix = "use such a tp, or let shardtool cut at blocks: ranks get unequal shards"});
  }

 private:
  const CheckedModel& model_;
  Findings& findings_;
  std::set<std::pair<std::string, i64>> seen_;
};

/// Suffix of the name of a scale per block, or empty.
std::string_view block_scale_suffix(std::string_view name) {
  for (const std::string_view suffix : {".weight_scale_inv", ".weight_scale", ".scale"}) {
    if (name.ends_with(suffix)) return suffix;
  }
  return {};
}

/// Types of the codes of weights that config.json says to be stored with one scale per tensor, row
/// or block; other floats are weights that are not quantised.
struct CodeType {
  std::string_view tag;
  std::string_view shown;
  DtypeKind kind = DtypeKind::kFloat;
};
constexpr auto kCodeTypes = std::to_array<CodeType>({
    {"fp8/block", "8-bit floats"},
    {"fp8/tensor", "8-bit floats"},
    {"fbgemm_fp8", "8-bit floats"},
    {"modelopt/FP8", "8-bit floats"},
    {"modelopt/NVFP4", "U8", DtypeKind::kUnsigned},
    {"compressed-tensors/float-quantized", "8-bit floats"},
    {"compressed-tensors/int-quantized", "I8", DtypeKind::kSigned},
});

/// Reports weights of 8 bits and scales whose types are not those of the format that config.json
/// names, and once that it names none: the same bytes under another type are other numbers.
void check_types(const CheckedModel& model, const SpecsByName& tensors, Findings& findings) {
  const auto tag = mapping::quantization_tag(model.config);
  const auto type = std::ranges::find(kCodeTypes, tag.value_or(""), &CodeType::tag);
  const bool says_nothing = model.config.find("quantization_config") == nullptr &&
                            model.config.find("text_config.quantization_config") == nullptr;
  if (type == kCodeTypes.end() && !says_nothing) return;
  for (const TensorSpec& scales : model.tensors) {
    const std::string_view name = scales.name;
    const std::string_view end = block_scale_suffix(name);
    if (!end.starts_with(".weight")) continue;
    const auto found = tensors.find(with_end(name, end, ".weight"));
    if (found == tensors.end() || bits(found->second->dtype) != 8) continue;
    const TensorSpec& weight = *found->second;
    if (says_nothing) {
      return findings.add(wrong_scales(
          model, scales, "config.json has no quantization_config, and a weight has scales",
          fmt::format("{} for {}", to_string(scales.dtype), to_string(weight.dtype)),
          "the \"quantization_config\" that the weights were stored by"));
    }
    const bool is_mixed = type->tag == "modelopt/NVFP4" && is_float8(weight.dtype);
    if (dtype_info(weight.dtype).kind != type->kind && !is_mixed) {
      findings.add(wrong_scales(model, weight, "a weight of another type than config.json says",
                                std::string(to_string(weight.dtype)), std::string(type->shown)));
    }
    if (dtype_info(scales.dtype).kind == DtypeKind::kFloat) continue;
    findings.add(wrong_scales(model, scales, "scales that are no floats",
                              std::string(to_string(scales.dtype)), "floats, such as F32"));
  }
}

void check_blocks(const CheckedModel& model, const SpecsByName& tensors, BlockTable& table,
                  Findings& findings) {
  const auto block = block_of(model.config);
  if (!block) return;
  for (const TensorSpec& tensor : model.tensors) {
    const std::string_view name = tensor.name;
    const auto suffix = block_scale_suffix(name);
    if (suffix.empty()) continue;
    const auto weight = tensors.find(with_end(name, suffix, ".weight"));
    if (weight == tensors.end() || !is_float8(weight->second->dtype)) continue;
    check_scale_shape(model, *weight->second, tensor, *block, findings);
    const auto axis = usual_cut(name);
    if (!axis || weight->second->shape.size() != 2) continue;
    table.note(*weight->second, *axis, weight->second->shape[*axis],
               *axis == 0 ? block->first : block->second);
  }
}

const nlohmann::json* member_of(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

/// Storage of all quantised weights of a model by compressed-tensors; null if it stores some in
/// another way.
const nlohmann::json* only_weights(const mapping::ModelConfig& config) {
  if (config.text("quantization_config.quant_method") != "compressed-tensors") return nullptr;
  const nlohmann::json* const groups = config.find("quantization_config.config_groups");
  if (groups == nullptr || !groups->is_object() || groups->size() != 1) return nullptr;
  return member_of(groups->front(), "weights");
}

/// Block of weights that compressed-tensors stores as one number per element.
std::optional<Block> block_of_strategy(const nlohmann::json& weights) {
  const nlohmann::json* const strategy = member_of(weights, "strategy");
  if (strategy == nullptr) return std::nullopt;
  if (*strategy == "block") return parsed_block(member_of(weights, "block_structure"));
  const nlohmann::json* const group = member_of(weights, "group_size");
  if (*strategy != "group" || group == nullptr || !group->is_number_integer()) return std::nullopt;
  const i64 inputs = group->get<i64>();
  return inputs < 1 ? std::nullopt : std::optional(Block(1, inputs));
}

/// Calls visit(weight, tensor) for the scales and zero points of weights with one number per
/// element.
template <class Visit>
void for_each_scale(const CheckedModel& model, const SpecsByName& tensors, Visit visit) {
  for (const TensorSpec& tensor : model.tensors) {
    for (const std::string_view part : {".weight_scale", ".weight_zero_point"}) {
      if (!tensor.name.ends_with(part)) continue;
      const auto weight = tensors.find(with_end(tensor.name, part, ".weight"));
      if (weight == tensors.end()) continue;
      if (!is_float8(weight->second->dtype) && weight->second->dtype != Dtype::kI8) continue;
      visit(*weight->second, tensor);
    }
  }
}

void check_blocks_of_strategy(const CheckedModel& model, const SpecsByName& tensors, Block block,
                              Findings& findings) {
  for_each_scale(model, tensors, [&](const TensorSpec& weight, const TensorSpec& scale) {
    check_scale_shape(model, weight, scale, block, findings);
  });
}

/// Reports scales that are not one for every row of their weight.
void check_rows_of_strategy(const CheckedModel& model, const SpecsByName& tensors,
                            Findings& findings) {
  for_each_scale(model, tensors, [&](const TensorSpec& weight, const TensorSpec& scale) {
    if (weight.shape.size() != 2) return;
    const Shape expected{weight.shape[0], 1};
    if (scale.shape == expected || scale.shape == Shape{weight.shape[0]}) return;
    findings.add(wrong_scales(model, scale,
                              fmt::format("'{}' has another number of rows", weight.name),
                              to_string(scale.shape),
                              fmt::format("{}: one number for each row of {}", to_string(expected),
                                          to_string(weight.shape))));
  });
}

/// Reports integer weights without the zero points that config.json says they have.
void check_zero_points(const CheckedModel& model, const SpecsByName& tensors,
                       const nlohmann::json& weights, Findings& findings) {
  const nlohmann::json* const symmetric = member_of(weights, "symmetric");
  if (symmetric == nullptr || *symmetric != false) return;
  for (const TensorSpec& tensor : model.tensors) {
    const bool is_packed = tensor.name.ends_with(".weight_packed");
    const std::string_view end = is_packed ? ".weight_packed" : ".weight";
    if (!tensor.name.ends_with(end) || tensor.dtype != (is_packed ? Dtype::kI32 : Dtype::kI8))
      continue;
    const std::string zeros = with_end(tensor.name, end, ".weight_zero_point");
    if (tensors.contains(zeros)) continue;
    findings.add({.rule = CheckRule::kScaleMissing,
                  .message = "a weight without zero points, although config.json says "
                             "\"symmetric\": false",
                  .file = model.config_file,
                  .tensor = tensor.name,
                  .expected = zeros,
                  .fix = "fetch the missing files, or say \"symmetric\": true if the weights are"});
  }
}

/// True if config.json says one number of inputs per group for all weights of the format. GPTQ's
/// "dynamic" gives some weights their own.
bool says_group_size(const CheckedModel& model, const model::PackedFormat& format) {
  if (format.group_size.empty()) return true;
  const nlohmann::json* const dynamic = model.config.find("quantization_config.dynamic");
  if (dynamic != nullptr && !dynamic->empty()) return false;
  const nlohmann::json* const groups = model.config.find("quantization_config.config_groups");
  if (groups != nullptr && groups->size() != 1) return false;
  const nlohmann::json* const size = model.config.find(format.group_size);
  return size != nullptr && size->is_number_integer() && (*size > 0 || *size == -1);
}

/// Compares the groups that a packed weight has scales for with those of config.json, and notes
/// which sizes fit them.
void check_groups(const CheckedModel& model, const model::PackedWeight& weight, BlockTable& table,
                  Findings& findings) {
  const i64 inputs = model::inputs_of(weight);
  const i64 groups = model::groups_of_inputs(weight, model.tensors);
  const i64 size = weight.group_size;
  const i64 expected = size > 0 ? ceil_div(inputs, size) : 1;
  const TensorSpec& scales = model.tensors[weight.scales];
  if (groups == expected) {
    // GPTQ and AWQ store [groups, out]: a cut of the input features is a cut of axis 0.
    const bool is_cut = weight.format->has_input_rows && usual_cut(scales.name) == size_t{1};
    if (is_cut && size > 0) table.note(scales, 0, inputs, size);
    return;
  }
  if (!says_group_size(model, *weight.format)) return;
  findings.add(
      wrong_scales(model, scales, "the groups of inputs are not of the size that config.json says",
                   fmt::format("{} in {}", plural(groups, "group"), to_string(scales.shape)),
                   fmt::format("{} of {} for {} inputs", plural(expected, "group"),
                               size < 0 ? inputs : size, inputs)));
}

/// Reports parts of packed weights that are missing or do not fit the codes, and scales of other
/// groups than config.json says. Notes which sizes fit the groups of the others, and once that
/// weights cannot be unpacked, and so are not checked.
void check_packed(const CheckedModel& model, BlockTable& table, Findings& findings) {
  std::vector<Error> unknown;
  const auto leave_out = [&](const Error& error, const std::string& missing) {
    if (error.code() != ErrorCode::kShapeMismatch) return unknown.push_back(error);
    const CheckRule rule = missing.empty() ? CheckRule::kScaleShape : CheckRule::kScaleMissing;
    Finding misfit = finding_of(rule, error, model.config_file);
    const bool is_known = std::ranges::any_of(findings.all(), [&](const Finding& other) {
      return other.rule == misfit.rule && other.tensor == misfit.tensor;
    });
    if (!is_known) findings.add(std::move(misfit));
  };
  for (const auto& weight : model::packed_weights(model.config, model.tensors, leave_out)) {
    check_groups(model, weight, table, findings);
  }
  if (unknown.empty()) return;
  const i64 others = std::ssize(unknown) - 1;
  Finding note = finding_of(CheckRule::kPackedForm, unknown.front(), model.config_file);
  note.message = fmt::format("not checked{}, because {}",
                             others > 0 ? ", as " + plural(others, "other") : "", note.message);
  findings.add(std::move(note));
}

}  // namespace

std::string with_end(std::string_view name, std::string_view end, std::string_view other) {
  return std::string(name.substr(0, name.size() - end.size())).append(other);
}

bool is_float8(Dtype dtype) {
  return bits(dtype) == 8 && dtype_info(dtype).kind == DtypeKind::kFloat && dtype != Dtype::kF8E8M0;
}

void check_scale_forms(const CheckedModel& model, const SpecsByName& tensors, Findings& findings) {
  check_types(model, tensors, findings);
  BlockTable table(model, findings);
  check_blocks(model, tensors, table, findings);
  check_packed(model, table, findings);
  const nlohmann::json* const weights = only_weights(model.config);
  if (weights == nullptr) return;
  check_zero_points(model, tensors, *weights, findings);
  if (const auto block = block_of_strategy(*weights))
    check_blocks_of_strategy(model, tensors, *block, findings);
  const nlohmann::json* const strategy = member_of(*weights, "strategy");
  if (strategy != nullptr && *strategy == "channel")
    check_rows_of_strategy(model, tensors, findings);
}

}  // namespace shardtool::check
