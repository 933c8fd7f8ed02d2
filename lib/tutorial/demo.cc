#include "lib/tutorial/demo.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <concepts>

#include "lib/base/interruption.h"
#include "lib/tutorial/layers/accelerated_product.h"
#include "lib/tutorial/proof/faults.h"

namespace shardtool::tutorial {
namespace {

/// A central difference with h = 1e-6 has about ten correct digits unless a ReLU switches between
/// its two points.
constexpr double kDirectionalTolerance = 1e-6;

std::string both_ways(const Counts& forward, const Counts& backward) {
  return fmt::format("forward {}; backward {}", to_string(forward), to_string(backward));
}

template <Number T>
void add_traffic(bool is_forward, const Counts& predicted, const Counts& counted, DemoRow& row) {
  for (const auto& [name, kind] : kCountedKinds) {
    if (predicted.*kind == engine::Counted{} && counted.*kind == engine::Counted{}) continue;
    row.traffic.push_back({is_forward, name, predicted.*kind, counted.*kind, i64{sizeof(T)}});
  }
}

template <Number T>
DemoRow row_of(const SystemCase<T>& one, CaseReport found) {
  const Proof& proof = found.proof;
  DemoRow row;
  row.system = one.name;
  row.number = number_name<T>();
  row.forward_equal = proof.forward_is_equal();
  row.backward_equal = proof.backward_is_equal();
  row.worst = proof.worst();
  row.adjoint = proof.adjoint;
  row.collectives = both_ways(proof.forward, proof.backward);
  row.expected_collectives = both_ways(one.expected.forward, one.expected.backward);
  add_traffic<T>(true, one.expected.forward, proof.forward, row);
  add_traffic<T>(false, one.expected.backward, proof.backward, row);
  const bool is_pipeline = std::any_of(proof.most_in_flight.begin(), proof.most_in_flight.end(),
                                       [](i64 n) { return n != 0; });
  if (is_pipeline) row.in_flight = fmt::format("{}", fmt::join(proof.most_in_flight, " "));
  row.fault = std::move(found.diagnosis);
  row.is_as_expected = row.fault.empty() && holds<T>(proof, one.expected);
  row.is_judged = !std::same_as<T, float>;
  return row;
}

/// This device's product; null is the CPU.
template <Number T>
Product<T> product_of(kernels::Accelerator* accelerator) {
  return accelerator == nullptr ? times<T> : product_on<T>(*accelerator);
}

template <Number T>
void add_systems(comm::Communicator& comm, const std::vector<SystemCase<T>>& systems,
                 kernels::Accelerator* accelerator, DemoReport& report) {
  Device<T> device(comm, product_of<T>(accelerator));
  for (const SystemCase<T>& one : systems) {
    check_interrupted();
    CaseReport found = report_on(device, one, one.example.parameters);
    report.rows.push_back(row_of(one, std::move(found)));
  }
}

void add_faults(comm::Communicator& comm, const DemoSystems& systems,
                kernels::Accelerator* accelerator, DemoReport& report) {
  const Product<Field> product = product_of<Field>(accelerator);
  const auto& sound = systems.to_plant_in();
  for (const PlantedFault<Field>& fault : all_faults<Field>(systems.hidden, comm.size())) {
    check_interrupted();
    const auto one = std::find_if(sound.begin(), sound.end(),
                                  [&](const auto& c) { return c.name.starts_with(fault.system); });
    DemoRow row = row_of(*one, plant(comm, fault, *one, product));
    row.planted = fault.name;
    row.is_as_expected = !row.fault.empty();
    report.rows.push_back(std::move(row));
  }
}

std::vector<std::string> not_planted(i64 hidden, int devices) {
  std::vector<std::string> reasons;
  if (devices == 1) reasons.emplace_back("exchanged shards: there is one device");
  if (hidden % devices == 0) {
    reasons.push_back(
        fmt::format("a dropped tail: {} hidden units over {} leave none", hidden, devices));
  }
  return reasons;
}

/// The gap of a random model: in a given one, a ReLU may switch between the two points.
double directional(const DemoSizes& sizes) {
  const auto example =
      random_layers<double>({sizes.in, sizes.hidden, sizes.out}, sizes.batch, sizes.seed);
  return directional_gap(example, yardstick(example).gradients, kernels::hashed(sizes.seed, 0));
}

void require_sizes(const DemoSizes& sizes) {
  for (const i64 size : {sizes.in, sizes.hidden, sizes.out, sizes.batch}) {
    if (size > 0) continue;
    throw Error(ErrorCode::kUsage, fmt::format("a size of {}: sizes are at least 1", size));
  }
}

}  // namespace

DemoSystems demo_systems(const DemoSizes& sizes, int devices, const StoredParameters& stored) {
  require_sizes(sizes);
  DemoSystems systems;
  systems.hidden = sizes.hidden;
  systems.field = all_systems<Field>(sizes, devices, stored);
  check_interrupted();
  systems.f64 = all_systems<double>(sizes, devices, stored);
  check_interrupted();
  systems.f32 = all_systems<float>(sizes, devices, stored);
  check_interrupted();
  if (!stored.empty()) systems.random = all_systems<Field>(sizes, devices);
  systems.directional = directional(sizes);
  return systems;
}

DemoReport run_mlp_demo(comm::Communicator& comm, const DemoSystems& systems,
                        kernels::Accelerator* accelerator) {
  DemoReport report;
  report.devices = comm.size();
  add_systems(comm, systems.field, accelerator, report);
  add_systems(comm, systems.f64, accelerator, report);
  add_systems(comm, systems.f32, accelerator, report);
  add_faults(comm, systems, accelerator, report);
  report.not_planted = not_planted(systems.hidden, comm.size());
  report.directional = systems.directional;
  report.passed = report.directional <= kDirectionalTolerance &&
                  std::all_of(report.rows.begin(), report.rows.end(), [](const DemoRow& row) {
                    return row.is_as_expected || !row.is_judged;
                  });
  return report;
}

}  // namespace shardtool::tutorial
