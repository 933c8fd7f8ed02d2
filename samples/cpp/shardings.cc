// The two-layer model y = relu(x W0) W1 in every sharding on four devices, forward and backward,
// compared with one device. The numbers are small integers, so that all sums are exact.
#include <shardtool/comm/embedded.h>
#include <shardtool/tutorial/shardings/pipeline.h>
#include <shardtool/tutorial/shardings/systems.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace shardtool::tutorial;
using Numbers = Matrix<double>;
using Engine = std::unique_ptr<System<double>>;

constexpr shardtool::i64 kIn = 4, kHidden = 8, kOut = 4, kBatch = 8, kExperts = 4;

/// Small integers that differ from place to place.
Numbers filled(shardtool::i64 rows, shardtool::i64 columns, int seed) {
  Numbers matrix(rows, columns);
  int state = seed;
  for (double& value : matrix.values()) value = (state = (state * 31 + 7) % 97) % 9 - 4;
  return matrix;
}

Parameters<double> model(const std::string& prefix, int seed) {
  return {{prefix + "layer_0/weights", filled(kIn, kHidden, seed)},
          {prefix + "layer_1/weights", filled(kHidden, kOut, seed + 1)}};
}

/// One model per expert, "expert_0/layer_0/weights", ...
Parameters<double> experts() {
  Parameters<double> all;
  for (int e = 0; e < kExperts; ++e) all.merge(model("expert_" + std::to_string(e) + "/", e + 3));
  return all;
}

/// Returns y and all gradients, each put together from the devices' parts.
Parameters<double> results(Device<double>& device, System<double>& engine,
                           const Parameters<double>& checkpoint) {
  const Numbers x = filled(kBatch, kIn, 11), g = filled(kBatch, kOut, 12);
  const int here = device.device_id();
  engine.load_checkpoint(checkpoint);
  const Numbers y = engine.forward(cut(x, engine.input(kBatch), here));
  Parameters<double> parts = engine.backward(cut(g, engine.output(kBatch), here));
  Parameters<double> whole{{"y", assembled(device.census(y), engine.output(kBatch))}};
  // Every device takes part in gathering every array, also where it has nothing of it.
  for (const auto& [name, parameter] : checkpoint) {
    whole[name] = assembled(device.census(parts[name]), engine.placements().at(name));
  }
  whole["dx"] = assembled(device.census(parts["dx"]), engine.input_gradient(kBatch));
  return whole;
}

void compare(Device<double>& device, const char* name, Engine engine, Engine reference,
             const Parameters<double>& checkpoint) {
  const Parameters<double> sharded = results(device, *engine, checkpoint);
  const Parameters<double> expected = results(device, *reference, checkpoint);
  if (device.device_id() != 0) return;
  std::printf("%-18s %s\n", name, sharded == expected ? "equal" : "DIFFERENT");
}

void run(shardtool::comm::Communicator& communicator) {
  Device<double> device(communicator);
  const auto check = [&](const char* name, Engine engine) {
    compare(device, name, std::move(engine), unsharded(device), model("", 1));
  };
  check("data parallel", data_parallel(device, GradientReduction::kSum));
  check("column -> row", column_row(device));
  check("row -> column", row_column(device));
  check("sequence parallel", sequence_parallel(device));
  check("fully sharded", fully_sharded(device, GradientReduction::kSum));
  const Assignment expert_of_row{0, 1, 2, 3, 0, 1, 0, 2};
  compare(device, "expert parallel", expert_parallel(device, expert_of_row),
          unsharded_experts(device, expert_of_row), experts());
}

/// A pipeline has at least one layer per device.
void run_pipeline(shardtool::comm::Communicator& communicator) {
  Device<double> device(communicator);
  const shardtool::i64 microbatches = 4;
  compare(device, "pipeline", std::make_unique<Pipeline<double>>(device, microbatches),
          unsharded(device), model("", 1));
}

}  // namespace

int main() {
  shardtool::comm::run_embedded(4, run);
  shardtool::comm::run_embedded(2, run_pipeline);
  return 0;
}
