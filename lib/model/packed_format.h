#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"

/// Weights that a checkpoint stores as words of small numbers beside their scales, as data: one row
/// per format says in which tensors the parts of a weight are and what its numbers mean,
///
///     weight = (code - zero) * scale          of the group that the input is in
///
/// Read from: AutoGPTQ auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py and, for zeros of the
/// second format, auto_gptq/modeling/_utils.py (gptq, gptq_v2);
/// AutoAWQ awq/utils/packing_utils.py (awq); compressed-tensors
/// compressors/quantized_compressors/pack_quantized.py and nvfp4_quantized.py; vLLM
/// model_executor/layers/quantization/modelopt.py (modelopt); transformers integrations/mxfp4.py
/// with the E2M1 and E8M0 of the OCP microscaling specification (mxfp4).
namespace shardtool::model {

struct PackedFormat {
  enum class Code { kUnsigned, kOffset, kE2M1 };  ///< kOffset: less half of the range

  std::string_view name;  ///< for messages
  std::string_view tag;   ///< of mapping::quantization_tag
  std::string_view weight;
  std::string_view codes;  ///< how their name ends where the weight's ends with `weight`; where
                           ///< both are the same they are bytes
  std::string_view scales;
  std::string_view zeros = {};     ///< packed as the codes are; may be absent
  std::string_view groups = {};    ///< of every input its group; may be absent
  std::string_view shape = {};     ///< the weight's extents; may be absent
  std::string_view divisor = {};   ///< of all scales
  std::string_view factor = {};    ///< of all scales
  bool has_input_rows = false;     ///< codes and scales are [in, out], else [.., out, in]
  bool is_packed_in_rows = false;  ///< a word has codes of rows below each other
  bool are_zeros_packed_in_rows = false;
  Code code = Code::kUnsigned;
  /// The index of each packed number's code in a word; empty: in order.
  std::array<int, 8> order = {0, 1, 2, 3, 4, 5, 6, 7};
  std::string_view bits = {};             ///< path in config.json, or empty: 4
  std::string_view group_size = {};       ///< path in config.json; -1 or absent: all inputs
  i64 group = 0;                          ///< without a path
  std::optional<Dtype> scale_dtype = {};  ///< unless the stored tensor says it
};

/// One weight of such a format, by the indices of its tensors in the checkpoint.
struct PackedWeight {
  const PackedFormat* format = nullptr;
  TensorSpec spec;  ///< as ops read it: [.., out, in], of experts in one tensor [experts, in, out]
  size_t codes = 0;
  size_t scales = 0;
  std::optional<size_t> zeros, groups, shape, divisor, factor;
  i64 bits = 4;
  i64 per_word = 8;     ///< codes in one stored number
  i64 group_size = -1;  ///< inputs; -1: all
  i64 zero_offset = 0;  ///< that stored zeros lack

  /// True if the stored rows are the columns of `spec`.
  bool is_turned() const { return format->has_input_rows || spec.shape.size() == 3; }
  std::vector<size_t> members() const;
};

/// The packed weights of a checkpoint; none where its config.json names no format of the table.
/// Their dtype is one that has every (code - zero) * scale exactly: F32 for scales of two bytes and
/// powers of two, else F64. Throws kUnsupported, naming the format, for bits that do not fill
/// words and for an unknown version of it, and kShapeMismatch where a part is not there or has
/// other extents than the codes.
std::vector<PackedWeight> packed_weights(const mapping::ModelConfig& config,
                                         std::span<const TensorSpec> tensors);

std::span<const PackedFormat> packed_formats();

}  // namespace shardtool::model
