#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/tutorial/workload.h"

namespace shardtool::tutorial {

/// One array of a sharded run, held part by part on every device, against the unsharded one.
struct ArrayVerdict {
  std::string name;  ///< "y", "dx" or a parameter's, for its gradient
  bool is_equal = true;
  double worst = 0;  ///< largest |difference| / largest |expected|; in the field 0 or 1
  /// Where it differs first and how, in words; empty when equal.
  std::string finding;
};

/// The verdict on an array of which this device holds `part`. All devices call it, and get the
/// same. The words tell a part that is missing at the end of the axis, replicas that differ, a sum
/// that was not taken, and one that was taken twice.
template <Number T>
ArrayVerdict judge(Device<T>& device, const std::string& name, const Matrix<T>& expected,
                   const Placement& placement, const Matrix<T>& part);

/// What a device got from a forward and a backward pass.
template <Number T>
struct Outcome {
  Matrix<T> y;
  Parameters<T> gradients;
  Counts forward;  ///< of this device
  Counts backward;
  i64 most_in_flight = 0;  ///< of a pipeline, else 0
};

/// forward(), then backward(), of this device's parts of x and g.
template <Number T>
Outcome<T> run_both_ways(Device<T>& device, System<T>& system, const Workload<T>& workload);

/// What a system has to communicate, and how many microbatches a pipeline may keep.
struct Expectation {
  Counts forward;  ///< of the run
  Counts backward;
  std::vector<i64> most_in_flight{};  ///< per device; 0 where there is no pipeline
};

/// A sharded run held against the unsharded one.
struct Proof {
  std::vector<ArrayVerdict> arrays;  ///< y, then gradients by name
  Counts forward;                    ///< of the run
  Counts backward;
  double adjoint = 0;               ///< adjoint_gap of the gradients, put together
  std::vector<i64> most_in_flight;  ///< per device

  bool forward_is_equal() const;
  bool backward_is_equal() const;
  double worst() const;
  /// The verdict of this name. Requires that there is one.
  const ArrayVerdict& array(const std::string& name) const;
};

/// Judges every output and every gradient. `divisor`: what the system divides gradients of
/// parameters by. All devices call it, and get the same.
template <Number T>
Proof prove(Device<T>& device, const System<T>& system, const Workload<T>& workload,
            const Outcome<T>& outcome, i64 divisor = 1);

/// Whether everything is as it should be: arrays, counts, activations in flight, the adjoint.
template <Number T>
bool holds(const Proof& proof, const Expectation& expected);

/// Why a proof fails, in words: parts of parameters that lie where others belong, counts and
/// activations in flight that are not as expected, the arrays' findings, the adjoint; empty when
/// all holds and every part lies where it belongs. All devices call it, and get the same.
template <Number T>
std::string diagnosis(Device<T>& device, const System<T>& system, const Workload<T>& workload,
                      const Proof& proof, const Expectation& expected);

}  // namespace shardtool::tutorial
