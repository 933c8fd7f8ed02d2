#pragma once

#include <string>
#include <vector>

#include "lib/tutorial/layers.h"
#include "lib/tutorial/systems.h"

namespace shardtool::tutorial {

/// The models of a checkpoint's experts, "expert_0/layer_0/weights", ..., numbered without gaps.
/// Throws kUnknownName for a name of no expert, kShapeMismatch where they differ in what they take
/// or give, and what layers_of throws.
template <Number T>
std::vector<std::vector<Layer<T>>> experts_of(const Parameters<T>& whole);

/// Throws kUnknownName where a row has an expert that is not there.
void require_experts(const Assignment& assignment, i64 n_experts);

/// Row i of the result is row order[i] of a.
template <Number T>
Matrix<T> picked(const Matrix<T>& a, const std::vector<i64>& order);

/// Row order[i] of the result is row i of a: `picked` undone; the other rows are 0.
template <Number T>
Matrix<T> put_back(const Matrix<T>& a, const std::vector<i64>& order, i64 rows);

/// Some consecutive experts on one device. Rows come with the numbers of their experts, in any
/// order; an expert may have none.
template <Number T>
class ExpertBank {
 public:
  ExpertBank() = default;
  /// Of all `models`, keeps those of `experts`; not empty.
  ExpertBank(std::vector<std::vector<Layer<T>>> models, Interval experts);

  Pass<T> run(const Matrix<T>& x, const Assignment& expert_of) const;
  /// Gradients by name, and "dx", row by row as in x.
  Parameters<T> pull_back(const Tape<T>& tape, const Matrix<T>& g,
                          const Assignment& expert_of) const;
  /// J v, as push_forward_layers.
  Matrix<T> push_forward(const Tape<T>& tape, const Parameters<T>& direction,
                         const Assignment& expert_of) const;

 private:
  Tape<T> tape_of(const Tape<T>& tape, size_t expert) const;

  i64 first_ = 0;
  std::vector<std::vector<Layer<T>>> models_;
};

}  // namespace shardtool::tutorial
