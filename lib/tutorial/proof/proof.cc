#include "lib/tutorial/proof/proof.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

namespace shardtool::tutorial {
namespace {

/// Counts of a device that add up over all. For gather, all_to_all and send every device has a part
/// of the numbers; for reductions it has all. All devices make the same calls, except for sends,
/// which only the two ends of a boundary make.
std::array<i64*, 4> summed(Counts& counts) {
  return {&counts.all_gather.elements, &counts.all_to_all.elements, &counts.send.elements,
          &counts.send.count};
}

/// Adds the counts of all devices, and sets their activations in flight.
template <Number T>
void count_all(Device<T>& device, const PassResults<T>& outcome, Proof& proof) {
  proof.forward = outcome.forward;
  proof.backward = outcome.backward;
  std::vector<i64*> sums;
  for (Counts* const counts : {&proof.forward, &proof.backward}) {
    for (i64* const sum : summed(*counts)) sums.push_back(sum);
  }
  std::vector<i64> numbers;
  for (i64* const sum : sums) numbers.push_back(std::exchange(*sum, 0));
  numbers.push_back(outcome.most_in_flight);
  const auto bytes = std::as_bytes(std::span(numbers));
  for (const std::string& text :
       device.census(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()))) {
    std::memcpy(numbers.data(), text.data(), bytes.size());
    for (size_t i = 0; i < sums.size(); ++i) *sums[i] += numbers[i];
    proof.most_in_flight.push_back(numbers.back());
  }
}

template <Number T>
const Matrix<T>& part_of(const Parameters<T>& parts, const std::string& name) {
  static const Matrix<T> kNothing;
  const Matrix<T>* found = find(parts, name);
  return found == nullptr ? kNothing : *found;
}

/// MatrixPlacement of a gradient.
template <Number T>
MatrixPlacement gradient_placement(const System<T>& system, const std::string& name, i64 batch) {
  if (name == kInputGradient) return system.input_gradient(batch);
  return system.placements().at(name);
}

/// Parts of all devices on device 0, in device order; empty on the others.
template <Number T>
std::vector<Matrix<T>> at_first(Device<T>& device, const Matrix<T>& part) {
  if (device.device_id() != 0) {
    device.send(0, part);
    return {};
  }
  std::vector<Matrix<T>> parts{part};
  for (int from = 1; from < device.num_devices(); ++from) parts.push_back(device.receive(from));
  return parts;
}

/// Assembles the gradients on device 0 and undoes an average; nullopt if one has a size other than
/// its parameter's, and on the other devices.
template <Number T>
std::optional<Parameters<T>> whole_gradients(Device<T>& device, const System<T>& system,
                                             const PassResults<T>& outcome,
                                             const Reference<T>& reference, i64 batch) {
  Parameters<T> whole;
  bool fits = device.device_id() == 0;
  const T divisor = from_integer<T>(reference.divisor);
  for (const auto& [name, gradient] : reference.results.gradients) {
    const std::vector<Matrix<T>> parts = at_first(device, part_of(outcome.gradients, name));
    if (parts.empty()) continue;
    const Matrix<T> all = assembled(parts, gradient_placement(system, name, batch));
    fits &= all.rows() == gradient.rows() && all.columns() == gradient.columns();
    whole[name] = name == kInputGradient ? all : scaled(all, divisor);
  }
  if (!fits) return std::nullopt;
  return whole;
}

/// The adjoint_gap of these gradients, which device 0 has; on every device.
template <Number T>
double adjoint_of(Device<T>& device, const Tangent<T>& tangent,
                  const std::optional<Parameters<T>>& whole) {
  double gap = whole ? adjoint_gap(tangent, *whole) : std::numeric_limits<double>::infinity();
  std::string bytes(sizeof gap, '\0');
  std::memcpy(bytes.data(), &gap, sizeof gap);
  std::memcpy(&gap, device.census(bytes).front().data(), sizeof gap);
  return gap;
}

}  // namespace

bool Proof::forward_is_equal() const {
  return arrays.front().is_equal;
}

bool Proof::backward_is_equal() const {
  return std::all_of(arrays.begin() + 1, arrays.end(),
                     [](const ArrayVerdict& verdict) { return verdict.is_equal; });
}

double Proof::worst() const {
  double worst = 0;
  for (const ArrayVerdict& verdict : arrays) {
    if (!(verdict.worst <= worst)) worst = verdict.worst;
  }
  return worst;
}

const ArrayVerdict& Proof::array(const std::string& name) const {
  return *std::find_if(arrays.begin(), arrays.end(),
                       [&](const ArrayVerdict& verdict) { return verdict.name == name; });
}

template <Number T>
PassResults<T> run_both_ways(Device<T>& device, System<T>& system, const Example<T>& example) {
  PassResults<T> outcome;
  const int here = device.device_id();
  const i64 batch = example.x.rows();
  const comm::Counters start = device.counters();
  outcome.y = system.forward(cut(example.x, system.input(batch), here));
  outcome.forward = device.counts_since(start);
  const comm::Counters middle = device.counters();
  outcome.gradients = system.backward(cut(example.g, system.output(batch), here));
  outcome.backward = device.counts_since(middle);
  return outcome;
}

template <Number T>
Proof prove(Device<T>& device, const System<T>& system, const Reference<T>& reference, i64 batch,
            const PassResults<T>& outcome) {
  const Yardstick<T>& expected = reference.results;
  std::vector<JudgedArray<T>> arrays{{"y", expected.y, system.output(batch), outcome.y}};
  for (const auto& [name, gradient] : expected.gradients) {
    arrays.push_back({name, gradient, gradient_placement(system, name, batch),
                      part_of(outcome.gradients, name)});
  }
  Proof proof;
  proof.arrays = judge(device, arrays);
  proof.adjoint = adjoint_of(device, reference.tangent,
                             whole_gradients(device, system, outcome, reference, batch));
  count_all(device, outcome, proof);
  return proof;
}

template <Number T>
bool holds(const Proof& proof, const Expectation& expected) {
  return proof.forward_is_equal() && proof.backward_is_equal() &&
         proof.forward == expected.forward && proof.backward == expected.backward &&
         proof.most_in_flight == expected.most_in_flight && proof.adjoint <= tolerance<T>();
}

template bool holds<Field>(const Proof&, const Expectation&);
template bool holds<double>(const Proof&, const Expectation&);
template bool holds<float>(const Proof&, const Expectation&);
template PassResults<Field> run_both_ways(Device<Field>&, System<Field>&, const Example<Field>&);
template Proof prove(Device<Field>&, const System<Field>&, const Reference<Field>&, i64,
                     const PassResults<Field>&);
template PassResults<double> run_both_ways(Device<double>&, System<double>&,
                                           const Example<double>&);
template Proof prove(Device<double>&, const System<double>&, const Reference<double>&, i64,
                     const PassResults<double>&);
template PassResults<float> run_both_ways(Device<float>&, System<float>&, const Example<float>&);
template Proof prove(Device<float>&, const System<float>&, const Reference<float>&, i64,
                     const PassResults<float>&);
}  // namespace shardtool::tutorial
