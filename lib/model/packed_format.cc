#include "lib/model/packed_format.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/base/name_map.h"
#include "lib/mapping/quantization.h"
#include "lib/model/packed_extents.h"

namespace shardtool::model {
namespace {

constexpr std::string_view kBits = "quantization_config.bits";
constexpr std::string_view kGroupSize = "quantization_config.group_size";
constexpr std::string_view kPackBits = "quantization_config.config_groups.group_0.weights.num_bits";
constexpr std::string_view kPackGroupSize =
    "quantization_config.config_groups.group_0.weights.group_size";
constexpr std::string_view kVersion = "quantization_config.checkpoint_format";
constexpr i64 kDefaultBits = 4;
constexpr i64 kMostBits = 8;
constexpr i64 kByte = 8;
constexpr i64 kWord = 32;

constexpr PackedFormat gptq(std::string_view tag, bool has_act_order) {
  return {.name = "GPTQ",
          .tag = tag,
          .weight = ".weight",
          .codes = ".qweight",
          .scales = ".scales",
          .zeros = ".qzeros",
          .groups = ".g_idx",
          .has_input_rows = true,
          .is_packed_in_rows = true,
          .are_groups_in_order = !has_act_order,
          .bits = kBits,
          .group_size = kGroupSize};
}

constexpr PackedFormat pack_quantized(std::string_view tag) {
  return {.name = "compressed-tensors pack-quantized",
          .tag = tag,
          .weight = ".weight",
          .codes = ".weight_packed",
          .scales = ".weight_scale",
          .zeros = ".weight_zero_point",
          .groups = ".weight_g_idx",
          .shape = ".weight_shape",
          .are_zeros_packed_in_rows = true,
          .code = kernels::CodeKind::kOffset,
          .bits = kPackBits,
          .group_size = kPackGroupSize};
}

constexpr PackedFormat mxfp4(std::string_view weight, std::string_view codes,
                             std::string_view scales) {
  return {.name = "MXFP4",
          .tag = "mxfp4",
          .weight = weight,
          .codes = codes,
          .scales = scales,
          .code = kernels::CodeKind::kE2M1,
          .group = 32,
          .scale_dtype = Dtype::kF8E8M0};
}

constexpr auto kFormats = std::to_array<PackedFormat>({
    gptq("gptq", false),
    gptq("gptq/desc_act", true),
    {.name = "AWQ",
     .tag = "awq/gemm",
     .weight = ".weight",
     .codes = ".qweight",
     .scales = ".scales",
     .zeros = ".qzeros",
     .has_input_rows = true,
     .order = {0, 4, 1, 5, 2, 6, 3, 7},
     .bits = kBits,
     .group_size = kGroupSize},
    pack_quantized("compressed-tensors/pack-quantized"),
    pack_quantized("compressed-tensors/pack-quantized/act_order"),
    {.name = "NVFP4",
     .tag = "compressed-tensors/nvfp4-pack-quantized",
     .weight = ".weight",
     .codes = ".weight_packed",
     .scales = ".weight_scale",
     .divisor = ".weight_global_scale",
     .code = kernels::CodeKind::kE2M1,
     .group = 16},
    {.name = "NVFP4",
     .tag = "modelopt/NVFP4",
     .weight = ".weight",
     .codes = ".weight",
     .scales = ".weight_scale",
     .factor = ".weight_scale_2",
     .code = kernels::CodeKind::kE2M1,
     .group = 16},
    mxfp4(".experts.gate_up_proj", ".experts.gate_up_proj_blocks", ".experts.gate_up_proj_scales"),
    mxfp4(".experts.down_proj", ".experts.down_proj_blocks", ".experts.down_proj_scales"),
});

Error unsupported(const PackedFormat& format, const std::string& what) {
  return {ErrorCode::kUnsupported,
          fmt::format("{} weights {} cannot be computed with", format.name, what)};
}

Error lacks(const std::string& part) {
  return Error(ErrorCode::kShapeMismatch, "a packed weight lacks a part").note("expected", part);
}

/// Returns the integer at a path, which may be negative; nullopt if there is none.
std::optional<i64> number_at(const mapping::ModelConfig& config, std::string_view path) {
  const nlohmann::json* value = path.empty() ? nullptr : config.find(path);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  return value->get<i64>();
}

bool is_exact_in_f32(Dtype scales) {
  return scales == Dtype::kF16 || scales == Dtype::kBF16 || scales == Dtype::kF8E8M0;
}

bool is_float(const TensorSpec& spec) {
  return dtype_info(spec.dtype).kind == DtypeKind::kFloat;
}

bool is_integer(const TensorSpec& spec) {
  const DtypeKind kind = dtype_info(spec.dtype).kind;
  return kind == DtypeKind::kSigned || kind == DtypeKind::kUnsigned;
}

void require_type(bool fits, const TensorSpec& part, const std::string& expected) {
  if (fits) return;
  throw Error(ErrorCode::kShapeMismatch,
              "a tensor of a packed weight has another type than its format")
      .tensor(part.name)
      .note("found", std::string(to_string(part.dtype)))
      .note("expected", expected);
}

/// Requires floats of the scales and integers of all other parts: the same bytes under another type
/// are other numbers.
void require_types(const PackedWeight& weight, std::span<const TensorSpec> tensors) {
  const TensorSpec& scales = tensors[weight.scales];
  const bool are_exponents = weight.format->scale_dtype && scales.dtype == Dtype::kU8;
  require_type(is_float(scales) || are_exponents, scales,
               weight.format->scale_dtype ? "U8 or a float" : "a float");
  for (const auto& part : {weight.divisor, weight.factor}) {
    if (part) require_type(is_float(tensors[*part]), tensors[*part], "a float");
  }
  for (const auto& part :
       {std::optional(weight.codes), weight.zeros, weight.groups, weight.shape}) {
    if (part) require_type(is_integer(tensors[*part]), tensors[*part], "an integer");
  }
}

/// Finds the parts of packed weights by their names.
class Finder {
 public:
  Finder(const mapping::ModelConfig& config, std::span<const TensorSpec> tensors)
      : config_(config), tensors_(tensors) {
    for (size_t t = 0; t < tensors.size(); ++t) by_name_.emplace(tensors[t].name, t);
  }

  /// Adds the weights of a format.
  void find_weights(const PackedFormat& format, const LeftOut& left_out,
                    std::vector<PackedWeight>& weights) const {
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const bool is_packed = format.codes != format.weight || tensors_[t].dtype == Dtype::kU8;
      if (!is_packed || !tensors_[t].name.ends_with(format.codes)) continue;
      const std::string missing = missing_part(format, t);
      try {
        if (!missing.empty()) throw lacks(missing).tensor(tensors_[t].name);
        weights.push_back(weight(format, t));
      } catch (Error& error) {
        if (!left_out) throw;
        left_out(error.tensor(tensors_[t].name), missing);
      }
    }
  }

 private:
  std::optional<size_t> find(const std::string& base, std::string_view suffix) const {
    if (suffix.empty()) return std::nullopt;
    const auto found = by_name_.find(base + std::string(suffix));
    return found == by_name_.end() ? std::nullopt : std::optional(found->second);
  }

  std::string base_of(const PackedFormat& format, size_t codes) const {
    const std::string& name = tensors_[codes].name;
    return name.substr(0, name.size() - format.codes.size());
  }

  /// Returns the name of the first part that the format requires and the weight lacks, or an empty
  /// text.
  std::string missing_part(const PackedFormat& format, size_t codes) const {
    const std::string base = base_of(format, codes);
    const bool needs_zeros = format.code == kernels::CodeKind::kUnsigned;
    for (const std::string_view suffix :
         {format.scales, needs_zeros ? format.zeros : "", format.divisor, format.factor}) {
      if (!suffix.empty() && !find(base, suffix)) return base + std::string(suffix);
    }
    return {};
  }

  /// Returns the weight with these codes, which lacks no part.
  PackedWeight weight(const PackedFormat& format, size_t codes) const {
    const std::string& name = tensors_[codes].name;
    const std::string base = base_of(format, codes);
    PackedWeight found;
    found.format = &format;
    found.codes = codes;
    found.scales = find(base, format.scales).value();
    found.zeros = find(base, format.zeros);
    found.groups = find(base, format.groups);
    found.shape = find(base, format.shape);
    found.divisor = find(base, format.divisor);
    found.factor = find(base, format.factor);
    found.bits = number_at(config_, format.bits).value_or(kDefaultBits);
    const i64 stored_bits = bits(tensors_[codes].dtype);
    if (stored_bits != (format.code == kernels::CodeKind::kE2M1 ? kByte : kWord)) {
      throw unsupported(format, fmt::format("in words of {} bits", stored_bits))
          .tensor(name)
          .help("take quantization_config of the config.json that these weights came with");
    }
    if (found.bits < 1 || found.bits > kMostBits || stored_bits % found.bits != 0) {
      throw unsupported(format, fmt::format("of {} bits", found.bits)).tensor(name);
    }
    found.per_word = stored_bits / found.bits;
    const bool has_order = format.order != PackedFormat{}.order;
    if (has_order && found.per_word != std::ssize(format.order)) {
      throw unsupported(format, fmt::format("of {} bits", found.bits)).tensor(name);
    }
    found.group_size = format.group_size.empty()
                           ? format.group
                           : number_at(config_, format.group_size).value_or(-1);
    found.zero_offset = zero_offset(format);
    found.spec = {base + std::string(format.weight), dtype_of(found), shape_of(found)};
    count_inputs(found);
    require_extents(found, tensors_);
    require_types(found, tensors_);
    return found;
  }

  /// The first version of GPTQ's format stores zeros less one.
  i64 zero_offset(const PackedFormat& format) const {
    if (format.name != "GPTQ") return 0;
    const std::string version = config_.text(kVersion).value_or("gptq");
    if (version == "gptq_v2") return 0;
    if (version == "gptq") return 1;
    throw unsupported(format, fmt::format("in the format '{}'", version));
  }

  Dtype dtype_of(const PackedWeight& weight) const {
    const Dtype scales = weight.format->scale_dtype.value_or(tensors_[weight.scales].dtype);
    return is_exact_in_f32(scales) ? Dtype::kF32 : Dtype::kF64;
  }

  /// Returns [out, in] for stored codes [in, out] or [out, in], and [experts, in, out] for
  /// [experts, out, blocks, bytes].
  Shape shape_of(const PackedWeight& weight) const {
    const TensorSpec& codes = tensors_[weight.codes];
    const Shape& stored = codes.shape;
    constexpr size_t kStack = 4;
    const auto times = [&](i64 words) {
      const auto extent = checked_mul(words, weight.per_word);
      if (!extent) throw Error(ErrorCode::kLimit, "a packed weight has 2^63 elements or more");
      return *extent;
    };
    if (stored.size() == kStack && !weight.format->has_input_rows) {
      return {stored[0], times(stored[2] * stored[3]), stored[1]};
    }
    if (stored.size() != 2) {
      throw unsupported(*weight.format, "of other axes")
          .tensor(codes.name)
          .note("found", to_string(stored));
    }
    if (!weight.format->has_input_rows) return {stored[0], times(stored[1])};
    return weight.format->is_packed_in_rows ? Shape{stored[1], times(stored[0])}
                                            : Shape{times(stored[1]), stored[0]};
  }

  /// Counts as many inputs as have a stored group, in a format whose last word may have more codes.
  void count_inputs(PackedWeight& weight) const {
    if (!weight.groups || !weight.shape) return;
    const Shape& groups = tensors_[*weight.groups].shape;
    i64& inputs = weight.spec.shape.back();
    const bool fits = groups.size() == 1 && groups[0] <= inputs;
    if (fits && groups[0] > inputs - weight.per_word) inputs = groups[0];
  }

  const mapping::ModelConfig& config_;
  std::span<const TensorSpec> tensors_;
  NameViewMap<size_t> by_name_;
};

}  // namespace

std::vector<size_t> PackedWeight::members() const {
  std::vector<size_t> all{codes, scales};
  for (const auto& other : {zeros, groups, shape, divisor, factor}) {
    if (other) all.push_back(*other);
  }
  return all;
}

std::vector<PackedWeight> packed_weights(const mapping::ModelConfig& config,
                                         std::span<const TensorSpec> tensors,
                                         const LeftOut& left_out) {
  const auto tag = mapping::quantization_tag(config);
  if (!tag) return {};
  std::vector<PackedWeight> all;
  for (const PackedFormat& format : kFormats) {
    if (format.tag == *tag) Finder(config, tensors).find_weights(format, left_out, all);
  }
  return all;
}

std::span<const PackedFormat> packed_formats() {
  return kFormats;
}

}  // namespace shardtool::model
