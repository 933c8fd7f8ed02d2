#include "lib/tutorial/shardings/expert_bank.h"
#include "lib/tutorial/shardings/systems.h"

namespace shardtool::tutorial {
namespace {

template <Number T>
class UnshardedExperts final : public System<T> {
 public:
  UnshardedExperts(Device<T>& device, Assignment assignment)
      : System<T>(device), assignment_(std::move(assignment)) {}

  void load_checkpoint(const Parameters<T>& whole) override {
    System<T>::load_checkpoint(whole);
    auto models = experts_of(whole);
    const auto n_experts = static_cast<i64>(models.size());
    require_experts(assignment_, n_experts);
    bank_ = ExpertBank<T>(std::move(models), {0, n_experts});
  }
  MatrixPlacement input(i64) const override { return replicated(); }
  MatrixPlacement output(i64) const override { return replicated(); }

 protected:
  Placements place(const Parameters<T>& whole) const override {
    return all_placed(whole, replicated());
  }
  Pass<T> run(const Matrix<T>& x) override {
    require_extent("rows of the batch", x.rows(), assignment_.size());
    return bank_.run(x, assignment_, this->device_.product());
  }
  Parameters<T> pull_back(const Tape<T>& tape, const Matrix<T>& g) override {
    return bank_.pull_back(tape, g, assignment_, this->device_.product());
  }

 private:
  Assignment assignment_;
  ExpertBank<T> bank_;
};

}  // namespace

template <Number T>
std::unique_ptr<System<T>> unsharded_experts(Device<T>& device, Assignment assignment) {
  return std::make_unique<UnshardedExperts<T>>(device, std::move(assignment));
}

template std::unique_ptr<System<Field>> unsharded_experts(Device<Field>&, Assignment);
template std::unique_ptr<System<double>> unsharded_experts(Device<double>&, Assignment);
template std::unique_ptr<System<float>> unsharded_experts(Device<float>&, Assignment);

}  // namespace shardtool::tutorial
