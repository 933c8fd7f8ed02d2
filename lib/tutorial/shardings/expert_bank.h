#pragma once

#include <string>
#include <vector>

#include "lib/tutorial/layers/layers.h"
#include "lib/tutorial/shardings/systems.h"

namespace shardtool::tutorial {

/// Returns the models of a checkpoint's experts, "expert_0/layer_0/weights", ..., numbered without
/// gaps. Throws kUnknownName for a name of no expert, kShapeMismatch if inputs or outputs differ in
/// size, and the errors of layers_of.
template <Number T>
std::vector<std::vector<DenseLayer<T>>> experts_of(const Parameters<T>& whole);

/// Throws kUnknownName for a row with an unknown expert.
void require_experts(const Assignment& assignment, i64 n_experts);

/// Returns a matrix whose row i is row order[i] of a.
template <Number T>
Matrix<T> picked(const Matrix<T>& a, const std::vector<i64>& order);

/// Inverse of `picked`: row order[i] of the result is row i of a; the other rows are 0.
template <Number T>
Matrix<T> put_back(const Matrix<T>& a, const std::vector<i64>& order, i64 rows);

/// Consecutive experts on one device. Rows come with the numbers of their experts, in any order; an
/// expert may have no rows.
template <Number T>
class ExpertBank {
 public:
  ExpertBank() = default;
  /// Keeps those of `models` in `experts`, which must not be empty.
  ExpertBank(std::vector<std::vector<DenseLayer<T>>> models, Interval experts);

  Pass<T> run(const Matrix<T>& x, const Assignment& expert_of,
              const Product<T>& product = times<T>) const;
  /// Returns gradients by name, and "dx" with the rows in the order of x.
  Parameters<T> pull_back(const Tape<T>& tape, const Matrix<T>& g, const Assignment& expert_of,
                          const Product<T>& product = times<T>) const;
  /// J v, as push_forward_layers.
  Matrix<T> push_forward(const Tape<T>& tape, const Parameters<T>& direction,
                         const Assignment& expert_of) const;

 private:
  Tape<T> tape_of(const Tape<T>& tape, size_t expert) const;

  i64 first_ = 0;
  std::vector<std::vector<DenseLayer<T>>> models_;
};

}  // namespace shardtool::tutorial
