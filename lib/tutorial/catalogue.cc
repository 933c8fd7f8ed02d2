#include "lib/tutorial/catalogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/tutorial/shardings/pipeline.h"

namespace shardtool::tutorial {
namespace {

/// Placements along the single mesh axis; array axis 0 is the rows.
const auto kWhole = plan::Placement::replicated();
const auto kByRows = plan::Placement::sharded(0);
const auto kByColumns = plan::Placement::sharded(1);
const auto kSummands = plan::Placement::partial();

template <Number T>
class Catalogue {
 public:
  Catalogue(const DemoSizes& sizes, int devices, bool has_biases,
            const StoredParameters& stored = {})
      : sizes_(sizes),
        devices_(devices),
        has_biases_(has_biases),
        parameters_(numbers_of<T>(stored)) {}

  std::vector<SystemCase<T>> cases() {
    add("unsharded", two_layers(), unsharded<T>, {});
    add_tensor_parallel();
    add_batch_parallel();
    for (const auto schedule : {PipelineSchedule::kGpipe, PipelineSchedule::k1F1B}) {
      add_pipeline(schedule);
    }
    add_experts();
    return std::move(cases_);
  }

 private:
  using Make = std::function<std::unique_ptr<System<T>>(Device<T>&)>;

  /// `divisor`: that of the gradients of parameters.
  SystemCase<T>& add(std::string name, Example<T> example, Make make, Expectation expected,
                     i64 divisor = 1) {
    SystemCase<T> one;
    one.name = std::move(name);
    one.example = has_biases_ ? std::move(example) : without_biases(std::move(example));
    one.reference = reference_of(one.example, divisor);
    one.make = std::move(make);
    one.expected = std::move(expected);
    one.expected.most_in_flight.assign(devices_, 0);
    return cases_.emplace_back(std::move(one));
  }

  Example<T> two_layers() const {
    Example<T> example =
        random_layers<T>({sizes_.in, sizes_.hidden, sizes_.out}, sizes_.batch, sizes_.seed);
    if (!parameters_.empty()) example.parameters = parameters_;
    return example;
  }

  /// Counts to move an activation with this number of features, for the whole batch.
  Counts activations(const plan::Placement& from, const plan::Placement& to, i64 features) const {
    return moved(from, to, sizes_.batch * features);
  }

  /// Counts to move every weight, or every bias.
  Counts weights(const plan::Placement& from, const plan::Placement& to) const {
    return moved(from, to, sizes_.in * sizes_.hidden) + moved(from, to, sizes_.hidden * sizes_.out);
  }
  Counts biases(const plan::Placement& from, const plan::Placement& to) const {
    if (!has_biases_) return {};
    return moved(from, to, sizes_.hidden) + moved(from, to, sizes_.out);
  }

  void add_tensor_parallel() {
    const auto& [in, hidden, out, batch, seed] = sizes_;
    add("column->row", two_layers(), column_row<T>,
        {activations(kSummands, kWhole, out), activations(kSummands, kWhole, in)});
    add("row->column", two_layers(), row_column<T>,
        {activations(kSummands, kWhole, hidden) + activations(kByColumns, kWhole, out),
         activations(kSummands, kWhole, hidden)});
    const Counts bias = has_biases_ ? moved(kSummands, kWhole, out) : Counts();
    add("sequence parallel", two_layers(), sequence_parallel<T>,
        {activations(kByRows, kWhole, in) + activations(kSummands, kByRows, out),
         activations(kByRows, kWhole, out) + activations(kSummands, kByRows, in) + bias});
  }

  void add_batch_parallel() {
    const Counts reduced = weights(kSummands, kWhole) + biases(kSummands, kWhole);
    // Row and column cuts have equal counts.
    const Counts gathered = weights(kByRows, kWhole);
    const Counts scattered = weights(kSummands, kByRows) + biases(kSummands, kByRows);
    for (const auto reduction : {GradientReduction::kSum, GradientReduction::kAverage}) {
      const bool is_sum = reduction == GradientReduction::kSum;
      const std::string suffix = is_sum ? ", sum" : ", average";
      const i64 divisor = is_sum ? 1 : devices_;
      add(
          "data parallel" + suffix, two_layers(),
          [=](Device<T>& device) { return data_parallel(device, reduction); }, {{}, reduced},
          divisor);
      add(
          "FSDP" + suffix, two_layers(),
          [=](Device<T>& device) { return fully_sharded(device, reduction); },
          {gathered + biases(kByRows, kWhole), gathered + scattered}, divisor);
    }
  }

  void add_pipeline(PipelineSchedule schedule) {
    const i64 n_layers = std::max<i64>(2, devices_);
    const i64 microbatches = std::min<i64>(sizes_.batch, 2 * devices_);
    std::vector<i64> widths(n_layers + 1, sizes_.hidden);
    widths.front() = sizes_.in;
    widths.back() = sizes_.out;
    const i64 boundaries = devices_ - 1;
    const Counts boundary{
        .send = {microbatches * boundaries, sizes_.batch * sizes_.hidden * boundaries}};
    SystemCase<T>& one =
        add(fmt::format("pipeline, {}, {} layers", to_string(schedule), n_layers),
            random_layers<T>(widths, sizes_.batch, sizes_.seed),
            [=](Device<T>& device) { return std::make_unique<Pipeline<T>>(device, microbatches); },
            {boundary, boundary});
    one.run = [schedule](Device<T>& device, System<T>& system, const Example<T>& example) {
      const int here = device.device_id();
      const i64 batch = example.x.rows();
      auto result = dynamic_cast<Pipeline<T>&>(system).step(
          cut(example.x, system.input(batch), here), cut(example.g, system.output(batch), here),
          schedule);
      return PassResults<T>{std::move(result.y), std::move(result.gradients), result.forward_counts,
                            result.backward_counts, result.most_in_flight};
    };
    for (int stage = 0; stage < devices_; ++stage) {
      one.expected.most_in_flight[stage] = most_in_flight(schedule, devices_, stage, microbatches);
    }
  }

  void add_experts() {
    const TwoLayers layers{sizes_.in, sizes_.hidden, sizes_.out};
    Example<T> example = random_experts<T>(layers, devices_ + 1, sizes_.batch, sizes_.seed);
    const Assignment assignment = example.assignment;
    // Rows go to the devices of their experts and back: x and y, dy and dx.
    const Counts there_and_back =
        activations(kByRows, kByColumns, sizes_.in) + activations(kByColumns, kByRows, sizes_.out);
    add(fmt::format("expert parallel, {} experts", devices_ + 1), std::move(example),
        [=](Device<T>& device) { return expert_parallel(device, assignment); },
        {there_and_back, there_and_back});
  }

  DemoSizes sizes_;
  int devices_;
  bool has_biases_;
  Parameters<T> parameters_;  ///< of the systems of two layers; empty: random
  std::vector<SystemCase<T>> cases_;
};

}  // namespace

template <Number T>
std::vector<SystemCase<T>> all_systems(const DemoSizes& sizes, int devices,
                                       const StoredParameters& stored) {
  const bool has_biases = stored.empty() || stored.contains(bias_name(0));
  return Catalogue<T>(sizes, devices, has_biases, stored).cases();
}

template <Number T>
std::vector<SystemCase<T>> all_systems_without_biases(const DemoSizes& sizes, int devices) {
  return Catalogue<T>(sizes, devices, false).cases();
}

template <Number T>
CaseReport report_on(Device<T>& device, const SystemCase<T>& one, const Parameters<T>& checkpoint) {
  const auto system = one.make(device);
  system->load_checkpoint(checkpoint);
  const PassResults<T> outcome = one.run(device, *system, one.example);
  CaseReport report;
  const i64 batch = one.example.x.rows();
  report.proof = prove(device, *system, one.reference, batch, outcome);
  report.diagnosis = diagnosis(device, *system, one.example, report.proof, one.expected);
  return report;
}

template std::vector<SystemCase<Field>> all_systems(const DemoSizes&, int, const StoredParameters&);
template std::vector<SystemCase<Field>> all_systems_without_biases(const DemoSizes&, int);
template CaseReport report_on(Device<Field>&, const SystemCase<Field>&, const Parameters<Field>&);
template std::vector<SystemCase<double>> all_systems(const DemoSizes&, int,
                                                     const StoredParameters&);
template std::vector<SystemCase<double>> all_systems_without_biases(const DemoSizes&, int);
template CaseReport report_on(Device<double>&, const SystemCase<double>&,
                              const Parameters<double>&);
template std::vector<SystemCase<float>> all_systems(const DemoSizes&, int, const StoredParameters&);
template std::vector<SystemCase<float>> all_systems_without_biases(const DemoSizes&, int);
template CaseReport report_on(Device<float>&, const SystemCase<float>&, const Parameters<float>&);
}  // namespace shardtool::tutorial
