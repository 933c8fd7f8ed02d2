#include "shardtool/engine/mlp/systems.h"

namespace shardtool::engine::mlp {
namespace {

template <Number T>
class ColumnRow final : public System<T> {
 public:
  using System<T>::System;

  Placement input(i64) const override { return replicated(); }
  Placement output(i64) const override { return replicated(); }

 protected:
  Placements place(const Parameters<T>& whole) const override {
    const Parts hidden = parts_of("hidden units", two_layers(whole).hidden, this->num_devices());
    return {{weights_name(0), columns(hidden)},
            {bias_name(0), columns(hidden)},
            {weights_name(1), rows(hidden)},
            {bias_name(1), replicated()}};
  }

  Pass<T> run(const Matrix<T>& x) override {
    Matrix<T> h = relu(linear(x, this->weights(0), this->bias(0)));
    const Matrix<T> sum = this->device_.all_reduce(times(h, this->weights(1)));
    // After the sum: on every device it would count as often as there are devices.
    return {plus_bias(sum, this->bias(1)), {x, std::move(h)}};
  }

  Parameters<T> pull_back(const Tape<T>& tape, const Matrix<T>& g) override {
    const Matrix<T>& h = tape[1];
    const Matrix<T> dz = masked(times(g, transposed(this->weights(1))), h);
    Parameters<T> gradients = layer_gradients(1, h, g, this->bias(1));
    gradients.merge(layer_gradients(0, tape[0], dz, this->bias(0)));
    gradients[std::string(kInputGradient)] =
        this->device_.all_reduce(times(dz, transposed(this->weights(0))));
    return gradients;
  }
};

}  // namespace

template <Number T>
std::unique_ptr<System<T>> column_row(Device<T>& device) {
  return std::make_unique<ColumnRow<T>>(device);
}

template std::unique_ptr<System<Field>> column_row(Device<Field>&);
template std::unique_ptr<System<double>> column_row(Device<double>&);
template std::unique_ptr<System<float>> column_row(Device<float>&);

}  // namespace shardtool::engine::mlp
