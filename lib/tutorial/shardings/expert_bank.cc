#include "lib/tutorial/shardings/expert_bank.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardtool::tutorial {
namespace {

std::string prefix_of(i64 expert) {
  return fmt::format("expert_{}/", expert);
}

std::vector<i64> rows_of(const Assignment& expert_of, i64 expert) {
  std::vector<i64> rows;
  for (size_t row = 0; row < expert_of.size(); ++row) {
    if (expert_of[row] == expert) rows.push_back(row);
  }
  return rows;
}

}  // namespace

template <Number T>
std::vector<std::vector<DenseLayer<T>>> experts_of(const Parameters<T>& whole) {
  std::vector<std::vector<DenseLayer<T>>> experts;
  while (whole.contains(prefix_of(experts.size()) + weights_name(0))) {
    experts.push_back(layers_of(whole, prefix_of(experts.size())));
    require_extent("input features of an expert", experts.back().front().weights.rows(),
                   experts.front().front().weights.rows());
    require_extent("output features of an expert", experts.back().back().weights.columns(),
                   experts.front().back().weights.columns());
  }
  size_t known = 0;
  for (size_t e = 0; e < experts.size(); ++e) {
    const std::string prefix = prefix_of(e);
    known += std::count_if(whole.begin(), whole.end(),
                           [&](const auto& entry) { return entry.first.starts_with(prefix); });
  }
  if (!experts.empty() && known == whole.size()) return experts;
  throw Error(ErrorCode::kUnknownName, "not every parameter is one of expert_0, expert_1, ...");
}

void require_experts(const Assignment& assignment, i64 n_experts) {
  for (const i64 expert : assignment) {
    if (expert >= 0 && expert < n_experts) continue;
    throw Error(ErrorCode::kUnknownName,
                fmt::format("a row is assigned to expert {} of {}", expert, n_experts));
  }
}

template <Number T>
Matrix<T> picked(const Matrix<T>& a, const std::vector<i64>& order) {
  Matrix<T> result(static_cast<i64>(order.size()), a.columns());
  for (size_t i = 0; i < order.size(); ++i) {
    std::copy(a.row(order[i]).begin(), a.row(order[i]).end(), result.row(i).begin());
  }
  return result;
}

template <Number T>
Matrix<T> put_back(const Matrix<T>& a, const std::vector<i64>& order, i64 rows) {
  Matrix<T> result(rows, a.columns());
  for (size_t i = 0; i < order.size(); ++i) {
    std::copy(a.row(i).begin(), a.row(i).end(), result.row(order[i]).begin());
  }
  return result;
}

template <Number T>
ExpertBank<T>::ExpertBank(std::vector<std::vector<DenseLayer<T>>> models, Interval experts)
    : first_(experts.begin),
      models_(std::make_move_iterator(models.begin() + experts.begin),
              std::make_move_iterator(models.begin() + experts.end)) {}

template <Number T>
Pass<T> ExpertBank<T>::run(const Matrix<T>& x, const Assignment& expert_of,
                           const Product<T>& product) const {
  Pass<T> pass{Matrix<T>(x.rows(), models_.front().back().weights.columns()), {}};
  for (size_t i = 0; i < models_.size(); ++i) {
    const std::vector<i64> rows = rows_of(expert_of, first_ + static_cast<i64>(i));
    Pass<T> own = run_layers<T>(models_[i], picked(x, rows), product);
    pass.y = plus(std::move(pass.y), put_back(own.y, rows, x.rows()));
    std::move(own.tape.begin(), own.tape.end(), std::back_inserter(pass.tape));
  }
  return pass;
}

/// The range of the tape that one expert wrote.
template <Number T>
Tape<T> ExpertBank<T>::tape_of(const Tape<T>& tape, size_t expert) const {
  auto begin = tape.begin();
  for (size_t i = 0; i < expert; ++i) begin += static_cast<i64>(models_[i].size());
  return Tape<T>(begin, begin + static_cast<i64>(models_[expert].size()));
}

template <Number T>
Parameters<T> ExpertBank<T>::pull_back(const Tape<T>& tape, const Matrix<T>& g,
                                       const Assignment& expert_of,
                                       const Product<T>& product) const {
  Parameters<T> gradients;
  const std::string input_gradient(kInputGradient);
  Matrix<T> dx(g.rows(), models_.front().front().weights.rows());
  for (size_t i = 0; i < models_.size(); ++i) {
    const i64 expert = first_ + static_cast<i64>(i);
    const std::vector<i64> rows = rows_of(expert_of, expert);
    Parameters<T> part = pull_back_layers<T>(models_[i], tape_of(tape, i), picked(g, rows), product,
                                             prefix_of(expert));
    dx = plus(std::move(dx), put_back(part.at(input_gradient), rows, g.rows()));
    part.erase(input_gradient);
    gradients.merge(std::move(part));
  }
  gradients[input_gradient] = std::move(dx);
  return gradients;
}

template <Number T>
Matrix<T> ExpertBank<T>::push_forward(const Tape<T>& tape, const Parameters<T>& direction,
                                      const Assignment& expert_of) const {
  const auto n_rows = static_cast<i64>(expert_of.size());
  Matrix<T> moved(n_rows, models_.front().back().weights.columns());
  for (size_t i = 0; i < models_.size(); ++i) {
    const i64 expert = first_ + static_cast<i64>(i);
    const std::vector<i64> rows = rows_of(expert_of, expert);
    Parameters<T> own = direction;
    Matrix<T>& dx = own.at(std::string(kInputGradient));
    dx = picked(dx, rows);
    const Matrix<T> part =
        push_forward_layers<T>(models_[i], tape_of(tape, i), own, prefix_of(expert));
    moved = plus(std::move(moved), put_back(part, rows, n_rows));
  }
  return moved;
}

template std::vector<std::vector<DenseLayer<Field>>> experts_of(const Parameters<Field>&);
template Matrix<Field> picked(const Matrix<Field>&, const std::vector<i64>&);
template Matrix<Field> put_back(const Matrix<Field>&, const std::vector<i64>&, i64);
template class ExpertBank<Field>;
template std::vector<std::vector<DenseLayer<double>>> experts_of(const Parameters<double>&);
template Matrix<double> picked(const Matrix<double>&, const std::vector<i64>&);
template Matrix<double> put_back(const Matrix<double>&, const std::vector<i64>&, i64);
template class ExpertBank<double>;
template std::vector<std::vector<DenseLayer<float>>> experts_of(const Parameters<float>&);
template Matrix<float> picked(const Matrix<float>&, const std::vector<i64>&);
template Matrix<float> put_back(const Matrix<float>&, const std::vector<i64>&, i64);
template class ExpertBank<float>;

}  // namespace shardtool::tutorial
