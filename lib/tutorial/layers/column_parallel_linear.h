#pragma once

#include <optional>

#include "lib/tutorial/layers/vocabulary_embedding.h"

namespace shardtool::tutorial {

/// y = x W + b with the outputs cut over the devices: each has columns of W [in, out], of b and of
/// y. The weights are its own, or those of an embedding (a tied head: y = x E^T + b), which has the
/// same cut.
template <Number T>
class ColumnParallelLinear {
 public:
  /// Keeps this device's columns. Throws kEmptyShard if a device would have no column, and
  /// kShapeMismatch for a bias of another length. `device` must outlive it.
  ColumnParallelLinear(Device<T>& device, const Matrix<T>& whole_weights,
                       const std::optional<Matrix<T>>& whole_bias,
                       layout::SplitRule rule = layout::kBalanced);
  /// Tied: reads the embedding's rows, which may change. The embedding must outlive the layer.
  ColumnParallelLinear(Device<T>& device, const VocabularyEmbedding<T>& tied_to,
                       const std::optional<Matrix<T>>& whole_bias);

  const Parts& parts() const { return parts_; }
  bool is_tied() const { return tied_to_ != nullptr; }

  /// Returns this device's columns of y for a whole x, without communication.
  Matrix<T> forward(const Matrix<T>& x) const;
  /// Gathers all columns of y from the devices' parts: one all_gather.
  Matrix<T> gathered(const Matrix<T>& y_part);

  struct Gradients {
    Matrix<T> weights;              ///< [in, this device's columns]
    std::optional<Matrix<T>> bias;  ///< this device's columns
    Matrix<T> x;                    ///< whole on every device: one all_reduce
  };
  /// Computes gradients from the input and this device's columns of dL/dy.
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
