#include "lib/api/dequantize/quantised_weight.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/base/error.h"
#include "lib/base/name_map.h"
#include "lib/base/text.h"
#include "lib/mapping/quantization.h"
#include "lib/model/graph/graph_list.h"
#include "lib/model/packed_extents.h"
#include "lib/model/packed_format.h"
#include "lib/model/packed_inputs.h"
#include "lib/model/weight_scales.h"

namespace shardtool::api {
namespace {

using Tensors = std::vector<LogicalTensor>;
using Axes = std::vector<StoredAxis>;

constexpr StoredAxis kFree{};

/// Quantisations with one 8-bit number per weight, and whether these may be integers.
struct ScaledTag {
  std::string_view tag;
  bool has_integers = false;
};
constexpr ScaledTag kScaledTags[] = {{"fp8/block"},
                                     {"fp8/tensor"},
                                     {"fbgemm_fp8"},
                                     {"modelopt/FP8"},
                                     {"modelopt/NVFP4"},
                                     {"compressed-tensors/float-quantized"},
                                     {"compressed-tensors/int-quantized", true},
                                     {"compressed-tensors/naive-quantized", true}};

Error unsupported_part(const TensorSpec& spec, const std::string& why,
                       const std::string& expected) {
  return Error(ErrorCode::kUnsupported, why)
      .tensor(spec.name)
      .note("found", fmt::format("{} {}", to_string(spec.dtype), to_string(spec.shape)))
      .note("expected", expected);
}

/// Makes the description of a packed weight.
class FromPacked {
 public:
  FromPacked(const Tensors& tensors, const model::PackedWeight& packed)
      : tensors_(tensors), packed_(packed), has_rows_(packed.format->has_input_rows) {}

  QuantisedWeight weight() {
    const model::PackedFormat& format = *packed_.format;
    weight_.scheme = format.tag;
    weight_.spec = packed_.spec;
    weight_.is_turned = packed_.is_turned();
    weight_.is_packed = true;
    weight_.is_packed_in_rows = format.is_packed_in_rows;
    weight_.are_zeros_packed_in_rows = format.are_zeros_packed_in_rows;
    weight_.are_inputs_rows = has_rows_;
    weight_.kind = format.code;
    weight_.words = packed_.words();
    weight_.zero_offset = packed_.zero_offset;
    weight_.scale_dtype = format.scale_dtype;
    add(packed_.codes, axes_of_codes());
    add(packed_.scales, axes_of_scales());
    if (packed_.zeros) weight_.zeros = add(*packed_.zeros, axes_of_zeros());
    if (packed_.groups) weight_.groups = add(*packed_.groups, {kFree});
    if (packed_.shape) weight_.shape = add(*packed_.shape, {kFree});
    for (auto [from, to] : {std::pair(packed_.divisor, &weight_.divisor),
                            std::pair(packed_.factor, &weight_.factor)}) {
      if (from) *to = add(*from, Axes(shape_of(*from).size()));
    }
    return std::move(weight_);
  }

 private:
  const Shape& shape_of(size_t tensor) const { return tensors_[tensor].spec.shape; }
  size_t add(size_t tensor, Axes axes) {
    weight_.members.push_back({tensors_[tensor], std::move(axes)});
    return weight_.members.size() - 1;
  }

  Axes axes_of_codes() const {
    constexpr i64 kBytesInBlock = 16;
    if (shape_of(packed_.codes).size() == 4) {  // [experts, out, blocks, bytes]
      return {{CodeAxis::kOuter},
              {CodeAxis::kRow},
              {CodeAxis::kColumn, kBytesInBlock * packed_.per_word},
              kFree};
    }
    if (packed_.format->is_packed_in_rows)
      return {{CodeAxis::kRow, packed_.per_word}, {CodeAxis::kColumn}};
    return {{CodeAxis::kRow}, {CodeAxis::kColumn, packed_.per_word}};
  }

  /// Axis of scales or zeros along the inputs. With groups by activation order all are read.
  StoredAxis input_axis(i64 groups) const {
    if (packed_.groups && groups > 1) return kFree;
    const Shape& shape = packed_.spec.shape;
    const i64 inputs = shape.size() > 2 ? shape[1] : shape.back();
    return {has_rows_ ? CodeAxis::kRow : CodeAxis::kColumn,
            model::inputs_per_group(packed_, tensors_[packed_.scales].spec, inputs, groups)};
  }

  Axes axes_of_scales() const {
    const Shape& shape = shape_of(packed_.scales);
    if (has_rows_) return {input_axis(shape[0]), {CodeAxis::kColumn}};
    if (shape.size() < 2) return Axes(shape.size());
    Axes axes{{CodeAxis::kRow}, input_axis(shape.back())};
    if (shape.size() == 3) axes.insert(axes.begin(), {CodeAxis::kOuter});
    return axes;
  }

  Axes axes_of_zeros() const {
    const Shape& shape = shape_of(*packed_.zeros);
    if (has_rows_) return {input_axis(shape[0]), {CodeAxis::kColumn, packed_.per_word}};
    return {{CodeAxis::kRow, packed_.per_word}, input_axis(shape.back())};
  }

  const Tensors& tensors_;
  const model::PackedWeight& packed_;
  bool has_rows_;
  QuantisedWeight weight_;
};

/// Finds weights of 8-bit numbers with their scales.
class ScaledFinder {
 public:
  ScaledFinder(const Tensors& tensors, const mapping::ModelConfig& config, const ScaledTag& tag)
      : tensors_(tensors), config_(config), tag_(tag) {
    for (const LogicalTensor& tensor : tensors) by_name_.emplace(tensor.spec.name, &tensor);
  }

  std::optional<QuantisedWeight> weight(const LogicalTensor& codes) const {
    const LogicalTensor* scales = nullptr;
    for (const std::string& name : model::scale_names(codes.spec.name)) {
      if (const auto found = by_name_.find(name); found != by_name_.end() && scales == nullptr)
        scales = found->second;
    }
    if (scales == nullptr) return std::nullopt;
    require_codes(codes.spec);
    require_scales(scales->spec);
    QuantisedWeight weight;
    weight.scheme = tag_.tag;
    weight.spec = codes.spec;
    Axes axes{{CodeAxis::kRow}, {CodeAxis::kColumn}};
    if (codes.spec.shape.size() == 3) axes.insert(axes.begin(), {CodeAxis::kOuter});
    weight.members = {{codes, axes}, {*scales, axes_of(scales->spec, codes.spec)}};
    const auto zeros = by_name_.find(model::zero_point_name(codes.spec.name));
    if (zeros == by_name_.end()) return weight;
    weight.zeros = weight.members.size();
    weight.members.push_back({*zeros->second, axes_of(zeros->second->spec, codes.spec)});
    return weight;
  }

 private:
  void require_codes(const TensorSpec& codes) const {
    const bool is_float = dtype_info(codes.dtype).kind == DtypeKind::kFloat;
    if (!is_float && tag_.tag == "fp8/block") {
      throw unsupported_part(codes, "FP4 weights beside FP8 weights are not dequantised",
                             "weights of 8-bit floats");
    }
    const bool fits = is_float || (tag_.has_integers && codes.dtype == Dtype::kI8);
    if (!fits || codes.shape.size() < 2 || codes.shape.size() > 3) {
      throw unsupported_part(codes, "a weight with scales has another form than is dequantised",
                             "a matrix, or a stack of matrices, of 8-bit floats or of I8");
    }
  }

  static void require_scales(const TensorSpec& scales) {
    if (dtype_info(scales.dtype).kind == DtypeKind::kFloat) return;
    throw unsupported_part(scales, "scales of another type than floats are not dequantised",
                           "floats, such as F32");
  }

  /// Axes of scales or zero points: one number, one per row, or one per block.
  Axes axes_of(const TensorSpec& scales, const TensorSpec& codes) const {
    const Shape& shape = scales.shape;
    const size_t outer = codes.shape.size() - 2;
    const bool is_one = element_count(shape) == 1 && outer == 0;
    if (is_one && shape.size() != codes.shape.size()) return Axes(shape.size());
    const bool is_per_row = outer == 0 && shape == Shape{codes.shape[0]};
    if (is_per_row) return {{CodeAxis::kRow}};
    if (shape.size() != codes.shape.size() || (outer == 1 && shape[0] != codes.shape[0]))
      throw unknown_form(scales, codes);
    Axes axes(outer, {CodeAxis::kOuter});
    for (size_t axis = 0; axis < 2; ++axis) {
      const auto per =
          model::scale_block(config_, codes.shape[outer + axis], shape[outer + axis], axis);
      if (!per) throw unknown_form(scales, codes);
      axes.push_back({axis == 0 ? CodeAxis::kRow : CodeAxis::kColumn, *per});
    }
    return axes;
  }

  static Error unknown_form(const TensorSpec& scales, const TensorSpec& codes) {
    return unsupported_part(scales, "scales are not one, one per row or one per block",
                            "scales of " + to_string(codes.shape))
        .help("take weights, scales and config.json from the same model");
  }

  const Tensors& tensors_;
  const mapping::ModelConfig& config_;
  const ScaledTag& tag_;
  NameViewMap<const LogicalTensor*> by_name_;
};

/// The parameters are read from the first group of layers.
void require_one_group(const mapping::ModelConfig& config) {
  const nlohmann::json* groups = config.find("quantization_config.config_groups");
  if (groups == nullptr || !groups->is_object()) return;
  const nlohmann::json* first = config.find("quantization_config.config_groups.group_0.weights");
  for (const auto& [name, group] : groups->items()) {
    const bool is_same = first != nullptr && group.is_object() && group.contains("weights") &&
                         group["weights"] == *first;
    if (is_same) continue;
    throw Error(ErrorCode::kUnsupported,
                "layers with several parameters of quantisation are not dequantised")
        .note("found",
              fmt::format("config_groups.{} in {}", quote_for_message(name, 60), config.file()))
        .note("expected", "the weights of group_0 in every group");
  }
}

/// Tags of quantisations whose weights are known (mapping::quantization_tag).
std::vector<std::string> known_quantisations() {
  std::set<std::string> tags;
  for (const ScaledTag& scaled : kScaledTags) tags.emplace(scaled.tag);
  for (const model::PackedFormat& format : model::packed_formats()) tags.emplace(format.tag);
  return {tags.begin(), tags.end()};
}

std::string require_tag(const mapping::ModelConfig& config) {
  const auto tag = mapping::quantization_tag(config);
  if (!tag) {
    throw Error(ErrorCode::kUnsupported, "config.json names no quantisation")
        .note("expected", "\"quantization_config\" in " + config.file())
        .help("leave out --dequantize");
  }
  const std::vector<std::string> known = known_quantisations();
  if (std::find(known.begin(), known.end(), *tag) != known.end()) return *tag;
  throw Error(ErrorCode::kUnsupported, fmt::format("weights stored as '{}' are not dequantised",
                                                   quote_for_message(*tag, 60)))
      .note("said by", "quantization_config in " + config.file())
      .note("known", fmt::format("{}", fmt::join(known, ", ")));
}

}  // namespace

std::vector<QuantisedWeight> quantised_weights(const LogicalCheckpoint& checkpoint,
                                               const mapping::ModelConfig& config) {
  const std::string tag = require_tag(config);
  require_one_group(config);
  std::vector<QuantisedWeight> weights;
  NameViewSet members;
  const std::vector<TensorSpec> specs = checkpoint.specs();
  std::vector<model::PackedWeight> all_packed = model::packed_weights(config, specs);
  std::string why_no_graph;
  model::leave_out_padding(model::find_graph(config, why_no_graph), config, specs, all_packed,
                           [](const model::PackedWeight&) { return true; });
  for (const model::PackedWeight& packed : all_packed) {
    weights.push_back(FromPacked(checkpoint.tensors, packed).weight());
    for (const size_t member : packed.members())
      members.insert(checkpoint.tensors[member].spec.name);
  }
  const auto* const scaled =
      std::find_if(std::begin(kScaledTags), std::end(kScaledTags),
                   [&tag](const ScaledTag& known) { return known.tag == tag; });
  if (scaled == std::end(kScaledTags)) return weights;
  const ScaledFinder finder(checkpoint.tensors, config, *scaled);
  for (const LogicalTensor& tensor : checkpoint.tensors) {
    const TensorSpec& spec = tensor.spec;
    if (bits(spec.dtype) != 8 || members.contains(spec.name)) continue;
    auto weight = finder.weight(tensor);
    if (weight) weights.push_back(*std::move(weight));
  }
  return weights;
}

}  // namespace shardtool::api
