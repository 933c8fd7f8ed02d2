#include "lib/tutorial/layers/column_parallel_linear.h"

#include "lib/tutorial/layers/layers.h"

namespace shardtool::tutorial {

template <Number T>
ColumnParallelLinear<T>::ColumnParallelLinear(Device<T>& device, const Matrix<T>& whole_weights,
                                              const std::optional<Matrix<T>>& whole_bias,
                                              layout::SplitRule rule)
    : device_(device),
      parts_(parts_of("output features", whole_weights.columns(), device.num_devices(), rule)),
      own_weights_(slice(whole_weights, Axis::kColumns, parts_[device.device_id()])) {
  keep_bias(whole_bias);
}

template <Number T>
ColumnParallelLinear<T>::ColumnParallelLinear(Device<T>& device,
                                              const VocabularyEmbedding<T>& tied_to,
                                              const std::optional<Matrix<T>>& whole_bias)
    : device_(device), parts_(tied_to.parts()), tied_to_(&tied_to) {
  keep_bias(whole_bias);
}

template <Number T>
void ColumnParallelLinear<T>::keep_bias(const std::optional<Matrix<T>>& whole_bias) {
  if (!whole_bias) return;
  require_extent("columns of a bias", whole_bias->columns(), parts_.back().end);
  bias_ = slice(*whole_bias, Axis::kColumns, parts_[device_.device_id()]);
}

template <Number T>
Matrix<T> ColumnParallelLinear<T>::weights() const {
  return is_tied() ? transposed(tied_to_->table()) : own_weights_;
}

template <Number T>
Matrix<T> ColumnParallelLinear<T>::forward(const Matrix<T>& x) const {
  return linear(x, weights(), bias_ ? &*bias_ : nullptr, device_.product());
}

template <Number T>
Matrix<T> ColumnParallelLinear<T>::gathered(const Matrix<T>& y_part) {
  return device_.all_gather(y_part, Axis::kColumns);
}

template <Number T>
typename ColumnParallelLinear<T>::Gradients ColumnParallelLinear<T>::backward(
    const Matrix<T>& x, const Matrix<T>& g_part) {
  Gradients gradients;
  gradients.weights = device_.product()(transposed(x), g_part);
  if (bias_) gradients.bias = row_sum(g_part);
  gradients.x = device_.all_reduce(device_.product()(g_part, transposed(weights())));
  return gradients;
}

template class ColumnParallelLinear<Field>;
template class ColumnParallelLinear<double>;
template class ColumnParallelLinear<float>;

}  // namespace shardtool::tutorial
