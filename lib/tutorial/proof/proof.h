#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/tutorial/proof/example.h"

namespace shardtool::tutorial {

/// Comparison of one array of a sharded run, distributed over the devices, with the unsharded one.
struct ArrayVerdict {
  std::string name;  ///< "y", "dx" or a parameter's name, for its gradient
  bool is_equal = true;
  double worst = 0;  ///< largest |difference| / largest |expected|; in the field 0 or 1
  /// Description of the first difference; empty if equal.
  std::string finding;
};

/// An array of which this device has `part`.
template <Number T>
struct JudgedArray {
  std::string name;
  const Matrix<T>& expected;
  MatrixPlacement placement;
  const Matrix<T>& part;
};

/// Judges arrays. All devices call it, and get the same result. Recognises a missing part at the
/// end of the axis, replicas that differ, a missing sum, and a sum taken twice.
template <Number T>
std::vector<ArrayVerdict> judge(Device<T>& device, const std::vector<JudgedArray<T>>& arrays);

/// A device's results of a forward and a backward pass.
template <Number T>
struct PassResults {
  Matrix<T> y;
  Parameters<T> gradients;
  Counts forward;  ///< of this device
  Counts backward;
  i64 most_in_flight = 0;  ///< for pipelines, else 0
};

/// Runs forward(), then backward(), on this device's parts of x and g.
template <Number T>
PassResults<T> run_both_ways(Device<T>& device, System<T>& system, const Example<T>& example);

/// Expected communication of a system, and the limit of microbatches in flight of a pipeline.
struct Expectation {
  Counts forward;  ///< of the run
  Counts backward;
  std::vector<i64> most_in_flight{};  ///< per device; 0 without a pipeline
};

/// Comparison of a sharded run with the unsharded one.
struct Proof {
  std::vector<ArrayVerdict> arrays;  ///< y, then gradients by name
  Counts forward;                    ///< of the run
  Counts backward;
  double adjoint = 0;               ///< adjoint_gap of the assembled gradients
  std::vector<i64> most_in_flight;  ///< per device

  bool forward_is_equal() const;
  bool backward_is_equal() const;
  double worst() const;
  /// Returns the verdict of this name, which must exist.
  const ArrayVerdict& array(const std::string& name) const;
};

/// Judges every output and every gradient of a batch of this size. All devices call it, and get the
/// same result.
template <Number T>
Proof prove(Device<T>& device, const System<T>& system, const Reference<T>& reference, i64 batch,
            const PassResults<T>& outcome);

/// True if arrays, counts, activations in flight and the adjoint are as expected.
template <Number T>
bool holds(const Proof& proof, const Expectation& expected);

/// Describes why a proof fails: misplaced parts of parameters, unexpected counts and activations in
/// flight, the arrays' findings, the adjoint. Empty if all checks pass and every part is in place.
/// All devices call it, and get the same result.
template <Number T>
std::string diagnosis(Device<T>& device, const System<T>& system, const Example<T>& example,
                      const Proof& proof, const Expectation& expected);

}  // namespace shardtool::tutorial
