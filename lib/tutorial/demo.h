#pragma once

#include <string>
#include <vector>

#include "kernels/device/accelerator.h"
#include "lib/tutorial/catalogue.h"

namespace shardtool::tutorial {

/// Communication of one pass by one kind of operation; numbers and calls as in Counts.
struct DemoTraffic {
  bool is_forward = true;
  std::string_view operation;
  engine::Counted predicted, counted;
  i64 number_bytes = 0;  ///< per number
};

/// One system in one arithmetic, correct or with a planted fault.
struct DemoRow {
  std::string system;
  std::string number;   ///< "field", "f64" or "f32"
  std::string planted;  ///< the fault; empty for a correct system
  bool forward_equal = false;
  bool backward_equal = false;  ///< all gradients
  double worst = 0;             ///< as in ArrayVerdict, over all arrays
  double adjoint = 0;           ///< |<Jv, g> - <v, J^T g>|, relative
  std::string collectives;  ///< counted: "forward 1 all_reduce of 12; backward 1 all_reduce of 9"
  std::string expected_collectives;
  std::vector<DemoTraffic> traffic;  ///< kinds that are expected or were counted
  std::string in_flight;             ///< pipelines: most microbatches per stage, "2 1"; else empty
  std::string fault;                 ///< description of the fault; empty if correct
  /// A correct system: all checks pass. A planted fault: it was detected.
  bool is_as_expected = false;
  bool is_judged = true;  ///< false for f32, which is a report
};

struct DemoReport {
  int devices = 0;
  std::vector<DemoRow> rows;
  std::vector<std::string> not_planted;  ///< faults that cannot occur here, with reasons
  double directional = 0;                ///< directional_gap of the unsharded f64 gradients
  bool passed = false;  ///< every judged row is as expected, directional below 1e-6
};

/// All systems for a number of devices, with the results of the unsharded runs. The devices of one
/// process share them, so that the unsharded model is run once and not by each of them.
struct DemoSystems {
  i64 hidden = 0;
  std::vector<SystemCase<Field>> field;
  std::vector<SystemCase<double>> f64;
  std::vector<SystemCase<float>> f32;
  /// Systems to plant faults in, if not those of the field: with random parameters, since the zeros
  /// of given ones could hide a fault.
  std::vector<SystemCase<Field>> random;
  double directional = 0;  ///< as in DemoReport

  const std::vector<SystemCase<Field>>& to_plant_in() const {
    return random.empty() ? field : random;
  }
};

/// Makes the systems. Those of two layers have the parameters `stored`, if there are any, whose
/// sizes `sizes` has. Throws kUsage for a size below 1, and kInterrupted.
DemoSystems demo_systems(const DemoSizes& sizes, int devices, const StoredParameters& stored = {});

/// Runs every system on the devices of `comm`, as many as `systems` are for, in the field, in f64
/// and in f32, and every fault in the field. Every device gets the same report. The systems
/// multiply on `accelerator` of this device, or on the CPU if it is null; the results that they are
/// compared with are the CPU's. The report does not depend on it. Throws kEmptyShard for a size
/// below the number of devices, kInterrupted, and the errors of the communicator and the
/// accelerator.
DemoReport run_mlp_demo(comm::Communicator& comm, const DemoSystems& systems,
                        kernels::Accelerator* accelerator = nullptr);

}  // namespace shardtool::tutorial
