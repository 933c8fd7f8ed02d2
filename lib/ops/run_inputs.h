#pragma once

#include <atomic>
#include <vector>

#include "kernels/decode/decode.h"
#include "lib/base/dtype.h"

namespace shardtool::ops {

/// The input of a forward pass: `sequences` sequences of `length` tokens each. Row s * length + t
/// of every value is token t of sequence s.
struct Inputs {
  i64 sequences = 1;
  i64 length = 1;
  std::vector<i64> tokens;     ///< ids, one per row, of tables that are looked up
  std::vector<float> given;    ///< rows of the extra input; empty: arbitrary numbers
  bool has_images = true;      ///< for models that take images
  bool ends_with_word = true;  ///< sequences of several positions end with a word, not an image
  std::uint64_t seed = 0;      ///< of residues
  kernels::NumberMap map = kernels::NumberMap::kBits;  ///< of residues
  /// Rounds every value to this type, as an engine of that type stores it; F32: no rounding. Floats
  /// only.
  Dtype activations = Dtype::kF32;
  /// Multiplies in the weights' type if the accelerator's library has it. Floats only. Requires an
  /// accelerator with a library.
  bool uses_library = false;
  i64 most_window = 0;                        ///< upper bound of sliding windows; 0: none
  const std::atomic<bool>* cancel = nullptr;  ///< ends long computations; see throw_if_stopped

  i64 rows() const { return sequences * length; }
};

}  // namespace shardtool::ops
