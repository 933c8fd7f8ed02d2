#pragma once

#include <vector>

#include "lib/tutorial/device.h"

namespace shardtool::tutorial {

using Tokens = std::vector<i64>;

/// A table [vocabulary, width] cut by rows over the devices; a token's row is on one of them.
template <Number T>
class VocabularyEmbedding {
 public:
  /// Keeps this device's rows. `device` must outlive it. Throws kEmptyShard where a device would
  /// hold no row.
  VocabularyEmbedding(Device<T>& device, const Matrix<T>& whole_table,
                      layout::SplitRule rule = layout::kBalanced);

  const Parts& parts() const { return parts_; }
  const Matrix<T>& table() const { return table_; }
  Matrix<T>& table() { return table_; }

  /// The row of every token, whole on every device: one all_reduce.
  /// Throws kUnknownName for a token that the vocabulary lacks.
  Matrix<T> forward(const Tokens& tokens);
  /// The gradient of this device's rows, from that of what forward() gave: no communication.
  Matrix<T> backward(const Tokens& tokens, const Matrix<T>& g) const;

 private:
  Device<T>& device_;
  Parts parts_;
  Matrix<T> table_;
};

}  // namespace shardtool::tutorial
