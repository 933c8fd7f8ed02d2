#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/tutorial/layers/stored_parameters.h"
#include "lib/tutorial/proof/proof.h"

namespace shardtool::tutorial {

/// Model and batch sizes for all systems.
struct DemoSizes {
  i64 in = 0;
  i64 hidden = 0;
  i64 out = 0;
  i64 batch = 0;
  std::uint64_t seed = 0;
};

/// One system with its example, the results of the unsharded run, and its expected communication.
/// Devices share it and only read it.
template <Number T>
struct SystemCase {
  std::string name;
  Example<T> example;
  Reference<T> reference;
  std::function<std::unique_ptr<System<T>>(Device<T>&)> make;
  /// Runs a loaded system that `make` made.
  std::function<PassResults<T>(Device<T>&, System<T>&, const Example<T>&)> run = run_both_ways<T>;
  Expectation expected;
};

/// Returns every system for this number of devices, with biases: unsharded, column->row,
/// row->column, data parallel and FSDP (summed and averaged), sequence parallel, the pipeline in
/// both schedules with max(2, devices) layers, experts (one more than devices). The expected counts
/// come from lib/plan for the placements of all arrays that move (validation.md, section 9); each
/// bias is one more array to reduce.
///
/// `stored` replaces the random parameters of the systems of two layers; its sizes are `sizes`. All
/// systems have biases if it has. The pipeline and the experts keep random parameters.
template <Number T>
std::vector<SystemCase<T>> all_systems(const DemoSizes& sizes, int devices,
                                       const StoredParameters& stored = {});

/// Returns the same models without biases.
template <Number T>
std::vector<SystemCase<T>> all_systems_without_biases(const DemoSizes& sizes, int devices);

/// Result of a system.
struct CaseReport {
  Proof proof;
  std::string diagnosis;  ///< empty if correct
};
/// Makes a system, loads `checkpoint`, runs it and compares the result with that of the example's
/// own parameters. All devices call it, and get the same result.
template <Number T>
CaseReport report_on(Device<T>& device, const SystemCase<T>& one, const Parameters<T>& checkpoint);

}  // namespace shardtool::tutorial
