#include "lib/tutorial/shardings/systems.h"

namespace shardtool::tutorial {
namespace {

/// No communication between the two layers. The three virtual functions define the communication
/// around them; by default x, y and their gradients are whole on every device.
template <Number T>
class ColumnRow : public System<T> {
 public:
  using System<T>::System;

  MatrixPlacement input(i64) const override { return replicated(); }
  MatrixPlacement output(i64 batch) const override { return this->input(batch); }

 protected:
  /// Gathers x or dy from the devices' parts.
  virtual Matrix<T> gathered(const Matrix<T>& part) { return part; }
  /// Sums y or dx over the devices and returns this device's part.
  virtual Matrix<T> summed(const Matrix<T>& summand) { return this->device_.all_reduce(summand); }
  /// Extends a sum over the rows of a device's part to all rows.
  virtual Matrix<T> over_all_rows(Matrix<T> sum) { return sum; }

  Placements place(const Parameters<T>& whole) const final {
    const Parts hidden = parts_of("hidden units", two_layers(whole).hidden, this->num_devices());
    return {{weights_name(0), columns(hidden)},
            {bias_name(0), columns(hidden)},
            {weights_name(1), rows(hidden)},
            {bias_name(1), replicated()}};
  }

  Pass<T> run(const Matrix<T>& part) final {
    Matrix<T> x = gathered(part);
    const Product<T>& product = this->device_.product();
    Matrix<T> h = relu(linear(x, this->weights(0), this->bias(0), product));
    const Matrix<T> y = summed(product(h, this->weights(1)));
    // Added after the sum; before it, the bias would count once per device.
    return {plus_bias(y, this->bias(1)), {std::move(x), std::move(h)}};
  }

  Parameters<T> pull_back(const Tape<T>& tape, const Matrix<T>& part) final {
    const Product<T>& product = this->device_.product();
    const Matrix<T>& h = tape[1];
    const Matrix<T> g = gathered(part);
    const Matrix<T> dz = masked(product(g, transposed(this->weights(1))), h);
    Parameters<T> gradients = layer_gradients<T>(1, h, g, nullptr, product);
    gradients.merge(layer_gradients(0, tape[0], dz, this->bias(0), product));
    gradients[std::string(kInputGradient)] = summed(product(dz, transposed(this->weights(0))));
    // Replicated, but each device has summed only the rows of its own part.
    if (this->bias(1) != nullptr) gradients[bias_name(1)] = over_all_rows(row_sum(part));
    return gradients;
  }
};

template <Number T>
class SequenceParallel final : public ColumnRow<T> {
 public:
  using ColumnRow<T>::ColumnRow;

  MatrixPlacement input(i64 batch) const override {
    return rows(parts_of("rows of the sequence", batch, this->num_devices()));
  }

 protected:
  Matrix<T> gathered(const Matrix<T>& part) override {
    return this->device_.all_gather(part, Axis::kRows);
  }
  Matrix<T> summed(const Matrix<T>& summand) override {
    return this->device_.reduce_scatter(summand, Axis::kRows, input(summand.rows()).parts);
  }
  Matrix<T> over_all_rows(Matrix<T> sum) override { return this->device_.all_reduce(sum); }
};

}  // namespace

template <Number T>
std::unique_ptr<System<T>> column_row(Device<T>& device) {
  return std::make_unique<ColumnRow<T>>(device);
}

template <Number T>
std::unique_ptr<System<T>> sequence_parallel(Device<T>& device) {
  return std::make_unique<SequenceParallel<T>>(device);
}

template std::unique_ptr<System<Field>> column_row(Device<Field>&);
template std::unique_ptr<System<double>> column_row(Device<double>&);
template std::unique_ptr<System<float>> column_row(Device<float>&);
template std::unique_ptr<System<Field>> sequence_parallel(Device<Field>&);
template std::unique_ptr<System<double>> sequence_parallel(Device<double>&);
template std::unique_ptr<System<float>> sequence_parallel(Device<float>&);

}  // namespace shardtool::tutorial
