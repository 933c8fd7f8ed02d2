#include "lib/api/transfer/cast_values.h"

#include <fmt/format.h>

#include "kernels/cast/cast.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/mapping/quantization.h"
#include "lib/model/packed_format.h"
#include "lib/model/weight_scales.h"

namespace shardtool::api {
namespace {

Error quantised(const std::string& found) {
  return Error(ErrorCode::kUnsupported,
               "the model is quantised: its weights and scales are not cast")
      .note("found", found)
      .note("expected", "floats that are values by themselves")
      .help("add --dequantize to make them floats, or leave out --dtype to keep them as they are");
}

/// Throws if an 8-bit float or a word of packed codes has its scales beside it.
void refuse_scaled(const LogicalTensor& tensor, const TensorsByName& tensors) {
  const std::string& name = tensor.spec.name;
  if (bits(tensor.spec.dtype) == 8) {
    for (const std::string& scale : model::scale_names(name)) {
      if (tensors.find(scale) == tensors.end()) continue;
      throw quantised("scales in '" + quote_for_message(scale) + "'").tensor(name);
    }
  }
  for (const model::PackedFormat& format : model::packed_formats()) {
    if (!name.ends_with(format.codes)) continue;
    const std::string scales =
        name.substr(0, name.size() - format.codes.size()) + std::string(format.scales);
    const auto found = tensors.find(scales);
    if (found == tensors.end() || !kernels::is_castable(found->second->spec.dtype)) continue;
    throw quantised("scales in '" + quote_for_message(scales) + "'").tensor(name);
  }
}

void refuse_quantised(const LogicalCheckpoint& checkpoint) {
  if (const auto config = checkpoint.config()) {
    if (const auto tag = mapping::quantization_tag(*config)) {
      throw quantised(fmt::format("'{}', by {}", quote_for_message(*tag), config->file()));
    }
  }
  const TensorsByName tensors = tensors_by_name(checkpoint);
  for (const LogicalTensor& tensor : checkpoint.tensors) refuse_scaled(tensor, tensors);
}

}  // namespace

std::optional<Dtype> cast_type(std::string_view name) {
  if (name == "bf16") return Dtype::kBF16;
  if (name == "f16" || name == "fp16") return Dtype::kF16;
  if (name == "f32" || name == "fp32") return Dtype::kF32;
  return std::nullopt;
}

void cast_values(LogicalCheckpoint& checkpoint, Dtype to) {
  refuse_quantised(checkpoint);
  for (LogicalTensor& tensor : checkpoint.tensors) {
    if (!kernels::is_castable(tensor.spec.dtype) || tensor.spec.dtype == to) continue;
    tensor.cast_from = tensor.spec.dtype;
    tensor.spec.dtype = to;
  }
}

}  // namespace shardtool::api
