#pragma once

#include <optional>

#include "lib/tutorial/vocabulary_embedding.h"

namespace shardtool::tutorial {

/// y = x W + b whose outputs are cut over the devices: each has columns of W [in, out], of b and of
/// y. Its weights are its own, or those of an embedding (a tied head: y = x E^T + b), which are
/// then cut as the embedding is, by the one rule that there is.
template <Number T>
class ColumnParallelLinear {
 public:
  /// Keeps this device's columns. Throws kEmptyShard where a device would have none, and
  /// kShapeMismatch for a bias of another length. `device` must outlive it.
  ColumnParallelLinear(Device<T>& device, const Matrix<T>& whole_weights,
                       const std::optional<Matrix<T>>& whole_bias,
                       layout::SplitRule rule = layout::kBalanced);
  /// Tied: reads the embedding's rows, which may change; it must outlive the layer.
  ColumnParallelLinear(Device<T>& device, const VocabularyEmbedding<T>& tied_to,
                       const std::optional<Matrix<T>>& whole_bias);

  const Parts& parts() const { return parts_; }
  bool is_tied() const { return tied_to_ != nullptr; }

  /// This device's columns of y, for a whole x: no communication.
  Matrix<T> forward(const Matrix<T>& x) const;
  /// All columns of y, from each device's: one all_gather.
  Matrix<T> gathered(const Matrix<T>& y_part);

  struct Gradients {
    Matrix<T> weights;              ///< [in, this device's columns]
    std::optional<Matrix<T>> bias;  ///< this device's columns
    Matrix<T> x;                    ///< whole on every device: one all_reduce
  };
  /// From the input and this device's columns of dL/dy.
  Gradients backward(const Matrix<T>& x, const Matrix<T>& g_part);

 private:
  Matrix<T> weights() const;
  void keep_bias(const std::optional<Matrix<T>>& whole_bias);

  Device<T>& device_;
  Parts parts_;
  const VocabularyEmbedding<T>* tied_to_ = nullptr;
  Matrix<T> own_weights_;
  std::optional<Matrix<T>> bias_;
};

}  // namespace shardtool::tutorial
