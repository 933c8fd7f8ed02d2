#pragma once

#include <vector>

#include "kernels/decode/decode.h"
#include "lib/base/dtype.h"

namespace shardtool::ops {

/// The input of a forward pass: `sequences` sequences of `length` tokens each. Row s * length + t
/// of every value is token t of sequence s.
struct Inputs {
  i64 sequences = 1;
  i64 length = 1;
  std::vector<i64> tokens;   ///< ids for table look-ups, one per row
  std::vector<float> given;  ///< rows of the extra input; empty: arbitrary numbers
  bool has_images = true;    ///< only for models that accept images
  /// Sequences of several positions end with a word instead of an image.
  bool ends_with_word = true;
  std::uint64_t seed = 0;                              ///< only for residues
  kernels::NumberMap map = kernels::NumberMap::kBits;  ///< only for residues
  /// Rounds every value to this type, like an engine of that type. F32: no rounding. Only for
  /// floats.
  Dtype activations = Dtype::kF32;
  /// Multiplies in the weights' type if the accelerator's library supports it. Only for floats.
  /// Requires an accelerator with a library.
  bool uses_library = false;
  i64 most_window = 0;  ///< upper bound of sliding windows; 0: none

  i64 rows() const { return sequences * length; }
};

}  // namespace shardtool::ops
