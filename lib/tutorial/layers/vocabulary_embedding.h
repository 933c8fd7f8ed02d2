#pragma once

#include <vector>

#include "lib/tutorial/device.h"

namespace shardtool::tutorial {

using Tokens = std::vector<i64>;

/// A table [vocabulary, width] cut by rows over the devices; each token's row is on one device.
template <Number T>
class VocabularyEmbedding {
 public:
  /// Keeps this device's rows. `device` must outlive it. Throws kEmptyShard if a device would have
  /// no row.
  VocabularyEmbedding(Device<T>& device, const Matrix<T>& whole_table,
                      layout::SplitRule rule = layout::kBalanced);

  const Parts& parts() const { return parts_; }
  const Matrix<T>& table() const { return table_; }
  Matrix<T>& table() { return table_; }

  /// Returns the row of every token, whole on every device: one all_reduce. Throws kUnknownName for
  /// a token outside of the vocabulary.
  Matrix<T> forward(const Tokens& tokens);
  /// Returns the gradient of this device's rows from that of forward()'s output, without
  /// communication.
  Matrix<T> backward(const Tokens& tokens, const Matrix<T>& g) const;

 private:
  Device<T>& device_;
  Parts parts_;
  Matrix<T> table_;
};

}  // namespace shardtool::tutorial
