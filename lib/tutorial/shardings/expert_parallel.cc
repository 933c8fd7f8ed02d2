#include "lib/tutorial/shardings/expert_bank.h"
#include "lib/tutorial/shardings/systems.h"

namespace shardtool::tutorial {
namespace {

/// Rows that one device sends and processes, computed from the assignment, which every device
/// knows.
struct Route {
  std::vector<i64> order;  ///< order of the device's own rows, grouped by destination
  Parts to_each;           ///< row ranges of the groups
  Parts from_each;         ///< row ranges of the received rows, by source
  Assignment expert_of;    ///< experts of the received rows
};

template <Number T>
class ExpertParallel final : public System<T> {
 public:
  ExpertParallel(Device<T>& device, Assignment assignment)
      : System<T>(device), assignment_(std::move(assignment)) {}

  void load_checkpoint(const Parameters<T>& whole) override {
    System<T>::load_checkpoint(whole);
    auto models = experts_of(whole);
    const auto n_experts = static_cast<i64>(models.size());
    require_experts(assignment_, n_experts);
    experts_ = parts_of("experts", n_experts, this->num_devices());
    bank_ = ExpertBank<T>(std::move(models), experts_[this->device_id()]);
    route_ = route();
  }
  MatrixPlacement input(i64 batch) const override {
    require_extent("rows of the batch", batch, assignment_.size());
    return rows(parts_or_nothing(batch, this->num_devices()));
  }
  MatrixPlacement output(i64 batch) const override { return input(batch); }

 protected:
  Placements place(const Parameters<T>& whole) const override {
    const i64 n_experts = experts_of(whole).size();
    const Parts experts = parts_of("experts", n_experts, this->num_devices());
    Placements placements;
    for (const auto& [name, array] : whole) {
      const i64 expert = std::stoll(name.substr(std::string_view("expert_").size()));
      placements[name] = owned_by(device_of(experts, expert));
    }
    return placements;
  }

  Pass<T> run(const Matrix<T>& x) override {
    Pass<T> pass = bank_.run(dispatched(x), route_.expert_of, this->device_.product());
    pass.y = returned(pass.y);
    return pass;
  }

  Parameters<T> pull_back(const Tape<T>& tape, const Matrix<T>& g) override {
    Parameters<T> gradients =
        bank_.pull_back(tape, dispatched(g), route_.expert_of, this->device_.product());
    Matrix<T>& dx = gradients.at(std::string(kInputGradient));
    dx = returned(dx);
    return gradients;
  }

 private:
  static int device_of(const Parts& experts, i64 expert) {
    int device = 0;
    while (experts[device].end <= expert) ++device;
    return device;
  }

  Route route() const {
    Route route;
    const Parts batch = parts_or_nothing(assignment_.size(), this->num_devices());
    const Interval own = batch[this->device_id()];
    for (int to = 0; to < this->num_devices(); ++to) {
      const i64 begin = route.order.size();
      for (i64 row = own.begin; row < own.end; ++row) {
        if (device_of(experts_, assignment_[row]) == to) route.order.push_back(row - own.begin);
      }
      route.to_each.push_back({begin, static_cast<i64>(route.order.size())});
    }
    for (const Interval& source : batch) {
      const i64 begin = route.expert_of.size();
      for (i64 row = source.begin; row < source.end; ++row) {
        if (device_of(experts_, assignment_[row]) != this->device_id()) continue;
        route.expert_of.push_back(assignment_[row]);
      }
      route.from_each.push_back({begin, static_cast<i64>(route.expert_of.size())});
    }
    return route;
  }

  Matrix<T> dispatched(const Matrix<T>& own) {
    require_extent("this device's rows of the batch", own.rows(), route_.order.size());
    return this->device_.all_to_all(picked(own, route_.order), Axis::kRows, route_.to_each);
  }

  Matrix<T> returned(const Matrix<T>& worked_on) {
    const Matrix<T> back = this->device_.all_to_all(worked_on, Axis::kRows, route_.from_each);
    return put_back(back, route_.order, back.rows());
  }

  Assignment assignment_;
  Parts experts_;
  ExpertBank<T> bank_;
  Route route_;
};

}  // namespace

template <Number T>
std::unique_ptr<System<T>> expert_parallel(Device<T>& device, Assignment assignment) {
  return std::make_unique<ExpertParallel<T>>(device, std::move(assignment));
}

template std::unique_ptr<System<Field>> expert_parallel(Device<Field>&, Assignment);
template std::unique_ptr<System<double>> expert_parallel(Device<double>&, Assignment);
template std::unique_ptr<System<float>> expert_parallel(Device<float>&, Assignment);

}  // namespace shardtool::tutorial
