#include "lib/tutorial/shardings/systems.h"

namespace shardtool::tutorial {
namespace {

template <Number T>
class Unsharded final : public System<T> {
 public:
  using System<T>::System;

  void load_checkpoint(const Parameters<T>& whole) override {
    System<T>::load_checkpoint(whole);
    layers_ = layers_of(whole);
  }
  MatrixPlacement input(i64) const override { return replicated(); }
  MatrixPlacement output(i64) const override { return replicated(); }

 protected:
  Placements place(const Parameters<T>& whole) const override {
    return all_placed(whole, replicated());
  }
  Pass<T> run(const Matrix<T>& x) override {
    return run_layers<T>(layers_, x, this->device_.product());
  }
  Parameters<T> pull_back(const Tape<T>& tape, const Matrix<T>& g) override {
    return pull_back_layers<T>(layers_, tape, g, this->device_.product());
  }

 private:
  std::vector<DenseLayer<T>> layers_;
};

}  // namespace

template <Number T>
std::unique_ptr<System<T>> unsharded(Device<T>& device) {
  return std::make_unique<Unsharded<T>>(device);
}

template std::unique_ptr<System<Field>> unsharded(Device<Field>&);
template std::unique_ptr<System<double>> unsharded(Device<double>&);
template std::unique_ptr<System<float>> unsharded(Device<float>&);

}  // namespace shardtool::tutorial
