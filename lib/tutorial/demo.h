#pragma once

#include <string>
#include <vector>

#include "lib/tutorial/catalogue.h"

namespace shardtool::tutorial {

using DemoOptions = DemoSizes;

/// What one pass communicates by one kind of operation: numbers and calls as of Counts.
struct DemoTraffic {
  bool is_forward = true;
  std::string_view operation;
  engine::Counted predicted, counted;
  i64 number_bytes = 0;  ///< of every number
};

/// One system in one arithmetic, as it should be or with a fault planted in it.
struct DemoRow {
  std::string system;
  std::string number;   ///< "field", "f64" or "f32"
  std::string planted;  ///< the fault; empty for a system as it should be
  bool forward_equal = false;
  bool backward_equal = false;  ///< every gradient
  double worst = 0;             ///< as of ArrayVerdict, over all arrays
  double adjoint = 0;           ///< |<Jv, g> - <v, J^T g>|, relative
  std::string collectives;  ///< counted: "forward 1 all_reduce of 12; backward 1 all_reduce of 9"
  std::string expected_collectives;
  std::vector<DemoTraffic> traffic;  ///< of the kinds that are expected or were counted
  std::string in_flight;  ///< of a pipeline, the most microbatches per stage: "2 1"; else empty
  std::string fault;      ///< what is wrong, in words; empty when nothing is
  /// A system as it should be: all of it holds. A planted fault: it was seen.
  bool is_as_expected = false;
  bool is_judged = true;  ///< false of f32, which is a report
};

struct DemoReport {
  int devices = 0;
  std::vector<DemoRow> rows;
  std::vector<std::string> not_planted;  ///< faults that cannot show here, and why
  double directional = 0;                ///< directional_gap of the unsharded f64 gradients
  bool passed = false;  ///< every judged row is as expected, directional below 1e-6
};

/// Runs every system on the devices of `comm`, in the field, in f64 and in f32, and every fault in
/// the field. Every device gets the same report. Throws kUsage where a size is below 1, kEmptyShard
/// where one is below the number of devices, and what the communicator throws.
DemoReport run_mlp_demo(comm::Communicator& comm, const DemoOptions& options);

}  // namespace shardtool::tutorial
