#include "lib/tutorial/shardings/systems.h"

namespace shardtool::tutorial {
namespace {

template <Number T>
class DataParallel final : public System<T> {
 public:
  DataParallel(Device<T>& device, GradientReduction reduction)
      : System<T>(device), reduction_(reduction) {}

  void load_checkpoint(const Parameters<T>& whole) override {
    System<T>::load_checkpoint(whole);
    layers_ = layers_of(whole);
  }
  MatrixPlacement input(i64 batch) const override {
    return rows(parts_of("rows of the batch", batch, this->num_devices()));
  }
  MatrixPlacement output(i64 batch) const override { return input(batch); }

 protected:
  Placements place(const Parameters<T>& whole) const override {
    return all_placed(whole, replicated());
  }
  Pass<T> run(const Matrix<T>& x) override {
    return run_layers<T>(layers_, x, this->device_.product());
  }

  Parameters<T> pull_back(const Tape<T>& tape, const Matrix<T>& g) override {
    Parameters<T> gradients = pull_back_layers<T>(layers_, tape, g, this->device_.product());
    for (auto& [name, gradient] : gradients) {
      if (name == kInputGradient) continue;
      gradient = reduced(this->device_.all_reduce(gradient), reduction_, this->num_devices());
    }
    return gradients;
  }

 private:
  GradientReduction reduction_;
  std::vector<DenseLayer<T>> layers_;
};

}  // namespace

template <Number T>
std::unique_ptr<System<T>> data_parallel(Device<T>& device, GradientReduction reduction) {
  return std::make_unique<DataParallel<T>>(device, reduction);
}

template std::unique_ptr<System<Field>> data_parallel(Device<Field>&, GradientReduction);
template std::unique_ptr<System<double>> data_parallel(Device<double>&, GradientReduction);
template std::unique_ptr<System<float>> data_parallel(Device<float>&, GradientReduction);

}  // namespace shardtool::tutorial
