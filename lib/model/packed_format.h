#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/unpack/unpack.h"
#include "lib/base/error.h"
#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"

/// Formats in which a checkpoint stores a weight as words of small codes with scales. One row per
/// format gives the names of a weight's parts and the meaning of its codes:
///
///     weight = (code - zero) * scale          with the zero and scale of the input's group
///
/// Read from: AutoGPTQ auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py and, for zeros of the
/// second format, auto_gptq/modeling/_utils.py (gptq, gptq_v2);
/// AutoAWQ awq/utils/packing_utils.py (awq); compressed-tensors
/// compressors/quantized_compressors/pack_quantized.py and nvfp4_quantized.py; vLLM
/// model_executor/layers/quantization/modelopt.py (modelopt); transformers integrations/mxfp4.py
/// with the E2M1 and E8M0 of the OCP microscaling specification (mxfp4).
namespace shardtool::model {

struct PackedFormat {
  std::string_view name;  ///< for messages
  std::string_view tag;   ///< mapping::quantization_tag
  std::string_view weight;
  /// Suffix of the codes' name, which replaces the suffix `weight`. If both are equal, codes are
  /// bytes.
  std::string_view codes;
  std::string_view scales;
  std::string_view zeros = {};     ///< packed like the codes; may be absent
  std::string_view groups = {};    ///< the group of every input; may be absent
  std::string_view shape = {};     ///< the weight's extents; may be absent
  std::string_view divisor = {};   ///< divides all scales
  std::string_view factor = {};    ///< multiplies all scales
  bool has_input_rows = false;     ///< codes and scales are [in, out]; else [.., out, in]
  bool is_packed_in_rows = false;  ///< a word has codes of consecutive rows
  bool are_zeros_packed_in_rows = false;
  bool are_groups_in_order = false;  ///< the groups of inputs, if they are stored, count up
  kernels::CodeKind code = kernels::CodeKind::kUnsigned;
  /// The index of each packed number's code in a word; empty: in order.
  std::array<int, 8> order = {0, 1, 2, 3, 4, 5, 6, 7};
  std::string_view bits = {};             ///< path in config.json; empty: 4 bits
  std::string_view group_size = {};       ///< path in config.json; -1 or absent: all inputs
  i64 group = 0;                          ///< group size if there is no path
  std::optional<Dtype> scale_dtype = {};  ///< used unless the stored tensor has its own
};

/// One packed weight, by the indices of its tensors in the checkpoint.
struct PackedWeight {
  const PackedFormat* format = nullptr;
  TensorSpec spec;  ///< as ops read it: [.., out, in]; of stacked experts [experts, in, out]
  size_t codes = 0;
  size_t scales = 0;
  std::optional<size_t> zeros, groups, shape, divisor, factor;
  i64 bits = 4;
  i64 per_word = 8;     ///< codes per stored number
  i64 group_size = -1;  ///< inputs per group; -1: all
  i64 zero_offset = 0;  ///< added to stored zeros

  /// True if the stored rows are the columns of `spec`.
  bool is_turned() const { return format->has_input_rows || spec.shape.size() == 3; }
  /// Form of the words of codes.
  kernels::WordForm words() const { return {per_word, bits, format->order}; }
  std::vector<size_t> members() const;
};

/// Takes the error about a packed weight that is left out for it. The error names a tensor.
/// `missing` is the name of the part that the weight lacks; it is empty for other errors.
using LeftOut = std::function<void(const Error& error, const std::string& missing)>;

/// Returns the packed weights of a checkpoint; empty if its config.json names no format of the
/// table. Their dtype represents every (code - zero) * scale exactly: F32 for scales of two bytes
/// and powers of two, else F64. Throws kUnsupported with the format for a number of bits that does
/// not fill words and for an unknown version; kShapeMismatch if a part is missing, does not fit
/// the codes or has another type, such as scales of integers. With `left_out` such a weight is left
/// out, and its error goes there.
std::vector<PackedWeight> packed_weights(const mapping::ModelConfig& config,
                                         std::span<const TensorSpec> tensors,
                                         const LeftOut& left_out = {});

std::span<const PackedFormat> packed_formats();

}  // namespace shardtool::model
