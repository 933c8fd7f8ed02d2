// A sharding of one's own: data parallel training and inference of a two-layer model in one class.
#include <shardtool/comm/embedded.h>
#include <shardtool/tutorial/shardings/system.h>

#include <cstdio>
#include <vector>

namespace {

using namespace shardtool::tutorial;
using Numbers = Matrix<double>;

/// Every device has all parameters and a part of the batch; backward adds the gradients.
class DataParallel : public System<double> {
 public:
  using System::System;
  MatrixPlacement input(shardtool::i64 batch) const override {
    return rows(parts_of("rows of the batch", batch, num_devices()));
  }
  MatrixPlacement output(shardtool::i64 batch) const override { return input(batch); }

 protected:
  Placements place(const Parameters<double>& whole) const override {
    return all_placed(whole, replicated());
  }
  Pass<double> run(const Numbers& x) override { return run_layers<double>(layers_of(held()), x); }
  Parameters<double> pull_back(const Tape<double>& tape, const Numbers& g) override {
    auto gradients = pull_back_layers<double>(layers_of(held()), tape, g);
    for (auto& [name, gradient] : gradients) {
      if (name != kInputGradient) gradient = device_.all_reduce(gradient);
    }
    return gradients;
  }
};

void run(shardtool::comm::Communicator& communicator) {
  Device<double> device(communicator);
  DataParallel engine(device);
  engine.load_checkpoint({{"layer_0/weights", Numbers(2, 2, {1, -1, 0, 1})},
                          {"layer_1/weights", Numbers(2, 2, {1, 2, 3, -1})}});

  // One step of training: each device has one of two samples.
  const Numbers batch(2, 2, {1, 2, 3, 1});
  const Numbers x = cut(batch, engine.input(2), device.device_id());
  const Numbers y = engine.forward(x);
  const Parameters<double> gradients = engine.backward(Numbers(1, 2, {1, 1}));
  std::vector<Numbers> inputs{Numbers(2, 2, {1, 2, 3, 1}), Numbers(2, 2, {0, 1, 1, 0})};
  if (device.device_id() == 0) {
    std::printf("y %g %g, dL/dW0 %g\n", y(0, 0), y(0, 1), gradients.at("layer_0/weights")(0, 0));
  }

  // Serving: device 0 reads the inputs and writes the outputs, in order.
  size_t next = 0;
  engine.inference_loop(
      [&]() -> std::optional<Numbers> {
        if (next == inputs.size()) return std::nullopt;
        return inputs[next++];
      },
      [](const Numbers& output) { std::printf("served %g %g\n", output(0, 0), output(1, 0)); });
}

}  // namespace

int main() {
  shardtool::comm::run_embedded(2, run);
  return 0;
}
