#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/unpack/unpack.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/mapping/document/config.h"

namespace shardtool::api {

/// Axis of a weight's codes, [.., rows, columns] as they are stored, one index per code.
enum class CodeAxis { kNone, kOuter, kRow, kColumn };

/// Axis of a stored tensor: one of its indices belongs to `per` indices of an axis of the codes.
struct StoredAxis {
  CodeAxis of = CodeAxis::kNone;
  i64 per = 1;
};

/// A stored tensor behind a weight.
struct StoredMember {
  LogicalTensor tensor;
  std::vector<StoredAxis> axes;
};

/// A weight that is stored as codes: (code - zero) * scale.
struct QuantisedWeight {
  std::string scheme;                 ///< mapping::quantization_tag
  TensorSpec spec;                    ///< as a model without quantisation names and shapes it
  bool is_turned = false;             ///< its rows are the columns of the codes
  std::vector<StoredMember> members;  ///< the codes, the scales, and the others
  std::optional<size_t> zeros, groups, shape, divisor, factor;  ///< indices into `members`

  bool is_packed = false;          ///< codes are in words, else they are 8-bit numbers
  bool is_packed_in_rows = false;  ///< a word has codes of consecutive rows
  bool are_zeros_packed_in_rows = false;
  bool are_inputs_rows = false;  ///< `groups` has the group of every row, else of every column
  kernels::CodeKind kind = kernels::CodeKind::kUnsigned;
  kernels::WordForm words;
  i64 zero_offset = 0;                    ///< added to packed zeros
  std::optional<Dtype> scale_dtype = {};  ///< of the scales, if they are stored as bytes

  const StoredMember& codes() const { return members[0]; }
  const StoredMember& scales() const { return members[1]; }
};

/// Returns the weights of a checkpoint that are stored as codes, in the order of their codes.
/// Throws kUnsupported for a tag that is not known, and with the tensor for codes without scales,
/// scales of another form, codes of another type and groups of layers with other parameters;
/// kShapeMismatch for parts that do not fit each other.
std::vector<QuantisedWeight> quantised_weights(const LogicalCheckpoint& checkpoint,
                                               const mapping::ModelConfig& config);

}  // namespace shardtool::api
