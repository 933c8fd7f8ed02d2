#include "shardtool/engine/mlp/systems.h"

namespace shardtool::engine::mlp {
namespace {

template <Number T>
class SequenceParallel final : public System<T> {
 public:
  using System<T>::System;

  Placement input(i64 batch) const override {
    return rows(parts_of("rows of the sequence", batch, this->num_devices()));
  }
  Placement output(i64 batch) const override { return input(batch); }

 protected:
  Placements place(const Parameters<T>& whole) const override {
    const Parts hidden = parts_of("hidden units", two_layers(whole).hidden, this->num_devices());
    return {{weights_name(0), columns(hidden)},
            {bias_name(0), columns(hidden)},
            {weights_name(1), rows(hidden)},
            {bias_name(1), replicated()}};
  }

  Pass<T> run(const Matrix<T>& x) override {
    Matrix<T> sequence = this->device_.all_gather(x, Axis::kRows);
    Matrix<T> h = relu(linear(sequence, this->weights(0), this->bias(0)));
    const Matrix<T> y = this->device_.reduce_scatter(times(h, this->weights(1)), Axis::kRows,
                                                     input(sequence.rows()).parts);
    return {plus_bias(y, this->bias(1)), {std::move(sequence), std::move(h)}};
  }

  Parameters<T> pull_back(const Tape<T>& tape, const Matrix<T>& g) override {
    const Matrix<T>& h = tape[1];
    const Matrix<T> sequence_g = this->device_.all_gather(g, Axis::kRows);
    const Matrix<T> dz = masked(times(sequence_g, transposed(this->weights(1))), h);
    Parameters<T> gradients = layer_gradients<T>(1, h, sequence_g, nullptr);
    gradients.merge(layer_gradients(0, tape[0], dz, this->bias(0)));
    gradients[std::string(kInputGradient)] = this->device_.reduce_scatter(
        times(dz, transposed(this->weights(0))), Axis::kRows, input(sequence_g.rows()).parts);
    // Replicated, but each device has added it to rows of its own.
    if (this->bias(1) != nullptr) gradients[bias_name(1)] = this->device_.all_reduce(row_sum(g));
    return gradients;
  }
};

}  // namespace

template <Number T>
std::unique_ptr<System<T>> sequence_parallel(Device<T>& device) {
  return std::make_unique<SequenceParallel<T>>(device);
}

template std::unique_ptr<System<Field>> sequence_parallel(Device<Field>&);
template std::unique_ptr<System<double>> sequence_parallel(Device<double>&);
template std::unique_ptr<System<float>> sequence_parallel(Device<float>&);

}  // namespace shardtool::engine::mlp
