#include "lib/tutorial/shardings/systems.h"

namespace shardtool::tutorial {
namespace {

template <Number T>
class RowColumn final : public System<T> {
 public:
  using System<T>::System;

  MatrixPlacement input(i64) const override { return replicated(); }
  MatrixPlacement output(i64) const override { return replicated(); }
  MatrixPlacement input_gradient(i64) const override { return columns(in_); }

  void load_checkpoint(const Parameters<T>& whole) override {
    const TwoLayers sizes = two_layers(whole);
    in_ = parts_of("input features", sizes.in, this->num_devices());
    out_ = parts_of("output features", sizes.out, this->num_devices());
    System<T>::load_checkpoint(whole);
  }

 protected:
  Placements place(const Parameters<T>&) const override {
    return {{weights_name(0), rows(in_)},
            {bias_name(0), replicated()},
            {weights_name(1), columns(out_)},
            {bias_name(1), columns(out_)}};
  }

  Pass<T> run(const Matrix<T>& x) override {
    require_extent("columns of x", x.columns(), in_.back().end);
    const Product<T>& product = this->device_.product();
    Matrix<T> mine = slice(x, Axis::kColumns, in_[this->device_id()]);
    const Matrix<T> z = this->device_.all_reduce(product(mine, this->weights(0)));
    Matrix<T> h = relu(plus_bias(z, this->bias(0)));
    const Matrix<T> y = linear(h, this->weights(1), this->bias(1), product);
    return {this->device_.all_gather(y, Axis::kColumns), {std::move(mine), std::move(h)}};
  }

  Parameters<T> pull_back(const Tape<T>& tape, const Matrix<T>& g) override {
    const Product<T>& product = this->device_.product();
    const Matrix<T>& h = tape[1];
    require_extent("columns of dL/dy", g.columns(), out_.back().end);
    const Matrix<T> mine = slice(g, Axis::kColumns, out_[this->device_id()]);
    const Matrix<T> dz =
        masked(this->device_.all_reduce(product(mine, transposed(this->weights(1)))), h);
    Parameters<T> gradients = layer_gradients(1, h, mine, this->bias(1), product);
    gradients.merge(layer_gradients(0, tape[0], dz, this->bias(0), product));
    gradients[std::string(kInputGradient)] = product(dz, transposed(this->weights(0)));
    return gradients;
  }

 private:
  Parts in_;
  Parts out_;
};

}  // namespace

template <Number T>
std::unique_ptr<System<T>> row_column(Device<T>& device) {
  return std::make_unique<RowColumn<T>>(device);
}

template std::unique_ptr<System<Field>> row_column(Device<Field>&);
template std::unique_ptr<System<double>> row_column(Device<double>&);
template std::unique_ptr<System<float>> row_column(Device<float>&);

}  // namespace shardtool::tutorial
