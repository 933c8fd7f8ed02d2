#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/tutorial/proof.h"

namespace shardtool::tutorial {

/// The sizes of what all systems are run on.
struct DemoSizes {
  i64 in = 0;
  i64 hidden = 0;
  i64 out = 0;
  i64 batch = 0;
  std::uint64_t seed = 0;
};

/// One system, what it is run on, and what it has to communicate.
template <Number T>
struct SystemCase {
  std::string name;
  Workload<T> workload;
  std::function<std::unique_ptr<System<T>>(Device<T>&)> make;
  /// Requires a loaded system that `make` made.
  std::function<Outcome<T>(Device<T>&, System<T>&, const Workload<T>&)> run = run_both_ways<T>;
  Expectation expected;
  i64 divisor = 1;  ///< of the gradients of parameters
};

/// Every system for this many devices, with biases: the unsharded one, column->row, row->column,
/// data parallel and FSDP (summed and averaged), sequence parallel, the pipeline in both schedules
/// with max(2, devices) layers, experts (one more than devices). The expected counts are what
/// lib/plan says of the placements of all that has to move (validation.md, section 9), where each
/// bias is one array more to reduce.
template <Number T>
std::vector<SystemCase<T>> all_systems(const DemoSizes& sizes, int devices);

/// The same models without biases.
template <Number T>
std::vector<SystemCase<T>> all_systems_without_biases(const DemoSizes& sizes, int devices);

/// How a system did.
struct CaseReport {
  Proof proof;
  std::string diagnosis;  ///< empty when nothing is wrong
};
/// Makes a system, loads `checkpoint`, runs it and judges it as if it had loaded the workload's own
/// parameters. All devices call it, and get the same.
template <Number T>
CaseReport report_on(Device<T>& device, const SystemCase<T>& one, const Parameters<T>& checkpoint);

}  // namespace shardtool::tutorial
