#include "lib/tutorial/shardings/systems.h"

namespace shardtool::tutorial {
namespace {

template <Number T>
class FullySharded final : public System<T> {
 public:
  FullySharded(Device<T>& device, GradientReduction reduction)
      : System<T>(device), reduction_(reduction) {}

  MatrixPlacement input(i64 batch) const override {
    return rows(parts_of("rows of the batch", batch, this->num_devices()));
  }
  MatrixPlacement output(i64 batch) const override { return input(batch); }

 protected:
  Placements place(const Parameters<T>& whole) const override {
    const TwoLayers sizes = two_layers(whole);
    const int devices = this->num_devices();
    const Parts out = parts_of("output features", sizes.out, devices);
    return {{weights_name(0), rows(parts_of("input features", sizes.in, devices))},
            {bias_name(0), columns(parts_of("hidden units", sizes.hidden, devices))},
            {weights_name(1), columns(out)},
            {bias_name(1), columns(out)}};
  }

  Pass<T> run(const Matrix<T>& x) override {
    return run_layers<T>(layers_of(gathered(this->held())), x, this->device_.product());
  }

  Parameters<T> pull_back(const Tape<T>& tape, const Matrix<T>& g) override {
    Parameters<T> gradients =
        pull_back_layers<T>(layers_for_backward(), tape, g, this->device_.product());
    for (auto& [name, gradient] : gradients) {
      if (name == kInputGradient) continue;
      const MatrixPlacement& placement = this->placements().at(name);
      gradient =
          reduced(this->device_.reduce_scatter(gradient, axis_of(placement), placement.parts),
                  reduction_, this->num_devices());
    }
    return gradients;
  }

 private:
  static Axis axis_of(const MatrixPlacement& placement) {
    return placement.kind == MatrixPlacement::Kind::kRows ? Axis::kRows : Axis::kColumns;
  }

  Parameters<T> gathered(const Parameters<T>& parts) {
    Parameters<T> whole;
    for (const auto& [name, part] : parts) {
      whole[name] = this->device_.all_gather(part, axis_of(this->placements().at(name)));
    }
    return whole;
  }

  /// Gathers only the weights again: gradients do not depend on the values of biases.
  std::vector<DenseLayer<T>> layers_for_backward() {
    Parameters<T> parts;
    for (const i64 layer : {0, 1}) parts[weights_name(layer)] = this->weights(layer);
    std::vector<DenseLayer<T>> layers = layers_of(gathered(parts));
    for (DenseLayer<T>& layer : layers) {
      if (this->bias(layer.number) != nullptr) layer.bias = Matrix<T>(1, layer.weights.columns());
    }
    return layers;
  }

  GradientReduction reduction_;
};

}  // namespace

template <Number T>
std::unique_ptr<System<T>> fully_sharded(Device<T>& device, GradientReduction reduction) {
  return std::make_unique<FullySharded<T>>(device, reduction);
}

template std::unique_ptr<System<Field>> fully_sharded(Device<Field>&, GradientReduction);
template std::unique_ptr<System<double>> fully_sharded(Device<double>&, GradientReduction);
template std::unique_ptr<System<float>> fully_sharded(Device<float>&, GradientReduction);

}  // namespace shardtool::tutorial
