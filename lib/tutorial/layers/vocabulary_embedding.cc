#include "lib/tutorial/layers/vocabulary_embedding.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardtool::tutorial {

template <Number T>
VocabularyEmbedding<T>::VocabularyEmbedding(Device<T>& device, const Matrix<T>& whole_table,
                                            layout::SplitRule rule)
    : device_(device),
      parts_(parts_of("rows of the vocabulary", whole_table.rows(), device.num_devices(), rule)),
      table_(slice(whole_table, Axis::kRows, parts_[device.device_id()])) {}

template <Number T>
Matrix<T> VocabularyEmbedding<T>::forward(const Tokens& tokens) {
  const Interval own = parts_[device_.device_id()];
  Matrix<T> rows(static_cast<i64>(tokens.size()), table_.columns());
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= parts_.back().end) {
      throw Error(ErrorCode::kUnknownName, fmt::format("token {} is not in a vocabulary of {}",
                                                       tokens[i], parts_.back().end));
    }
    if (tokens[i] < own.begin || tokens[i] >= own.end) continue;
    const auto row = table_.row(tokens[i] - own.begin);
    std::copy(row.begin(), row.end(), rows.row(i).begin());
  }
  return device_.all_reduce(rows);
}

template <Number T>
Matrix<T> VocabularyEmbedding<T>::backward(const Tokens& tokens, const Matrix<T>& g) const {
  require_extent("rows of the gradient of an embedding", g.rows(), tokens.size());
  const Interval own = parts_[device_.device_id()];
  Matrix<T> gradient(table_.rows(), table_.columns());
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < own.begin || tokens[i] >= own.end) continue;
    for (i64 c = 0; c < g.columns(); ++c) gradient(tokens[i] - own.begin, c) += g(i, c);
  }
  return gradient;
}

template class VocabularyEmbedding<Field>;
template class VocabularyEmbedding<double>;
template class VocabularyEmbedding<float>;

}  // namespace shardtool::tutorial
