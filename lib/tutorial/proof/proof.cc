#include "lib/tutorial/proof/proof.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace shardtool::tutorial {
namespace {

template <Number T>
std::vector<i64> number_of_each(Device<T>& device, i64 own) {
  std::vector<i64> numbers;
  for (const std::string& text : device.census(std::to_string(own))) {
    numbers.push_back(std::stoll(text));
  }
  return numbers;
}

template <Number T>
i64 sum_over_devices(Device<T>& device, i64 own) {
  const std::vector<i64> numbers = number_of_each(device, own);
  return std::accumulate(numbers.begin(), numbers.end(), i64{0});
}

/// Adds the counts of all devices. For gather, all_to_all and send every device has a part of the
/// numbers; for reductions it has all. All devices make the same calls, except for sends, which
/// only the two ends of a boundary make.
template <Number T>
Counts counts_of_all(Device<T>& device, const Counts& own) {
  Counts all = own;
  for (const auto kind : {&Counts::all_gather, &Counts::all_to_all, &Counts::send}) {
    (all.*kind).elements = sum_over_devices(device, (own.*kind).elements);
  }
  all.send.count = sum_over_devices(device, own.send.count);
  return all;
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

template <Number T>
Matrix<T> divided_by(Matrix<T> gradient, i64 divisor) {
  for (T& value : gradient.values()) value = divided(value, divisor);
  return gradient;
}

/// Assembles the gradients from all devices and undoes an average; nullopt if one has a size other
/// than its parameter's.
template <Number T>
std::optional<Parameters<T>> whole_gradients(Device<T>& device, const System<T>& system,
                                             const PassResults<T>& outcome,
                                             const Parameters<T>& expected, i64 batch,
                                             i64 divisor) {
  Parameters<T> whole;
  bool fits = true;
  for (const auto& [name, gradient] : expected) {
    const Matrix<T> all = assembled(device.census(part_of(outcome.gradients, name)),
                                    gradient_placement(system, name, batch));
    fits &= all.rows() == gradient.rows() && all.columns() == gradient.columns();
    whole[name] = name == kInputGradient ? all : scaled(all, from_integer<T>(divisor));
  }
  if (!fits) return std::nullopt;
  return whole;
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
Proof prove(Device<T>& device, const System<T>& system, const Example<T>& example,
            const PassResults<T>& outcome, i64 divisor) {
  const Yardstick<T> expected = yardstick(example);
  const i64 batch = example.x.rows();
  Proof proof;
  proof.arrays.push_back(judge(device, "y", expected.y, system.output(batch), outcome.y));
  for (const auto& [name, gradient] : expected.gradients) {
    const Matrix<T> want = name == kInputGradient ? gradient : divided_by(gradient, divisor);
    proof.arrays.push_back(judge(device, name, want, gradient_placement(system, name, batch),
                                 part_of(outcome.gradients, name)));
  }
  const auto whole = whole_gradients(device, system, outcome, expected.gradients, batch, divisor);
  constexpr std::uint64_t kDirectionSeed = 17;
  proof.adjoint = whole ? adjoint_gap(example, *whole, kDirectionSeed)
                        : std::numeric_limits<double>::infinity();
  proof.forward = counts_of_all(device, outcome.forward);
  proof.backward = counts_of_all(device, outcome.backward);
  proof.most_in_flight = number_of_each(device, outcome.most_in_flight);
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
template Proof prove(Device<Field>&, const System<Field>&, const Example<Field>&,
                     const PassResults<Field>&, i64);
template PassResults<double> run_both_ways(Device<double>&, System<double>&,
                                           const Example<double>&);
template Proof prove(Device<double>&, const System<double>&, const Example<double>&,
                     const PassResults<double>&, i64);
template PassResults<float> run_both_ways(Device<float>&, System<float>&, const Example<float>&);
template Proof prove(Device<float>&, const System<float>&, const Example<float>&,
                     const PassResults<float>&, i64);
}  // namespace shardtool::tutorial
