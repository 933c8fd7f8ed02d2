#include "lib/tutorial/proof/faults.h"

#include <algorithm>

namespace shardtool::tutorial {
namespace {

template <Number T>
using MakeDevice = std::function<std::unique_ptr<Device<T>>(comm::Communicator&, Product<T>)>;

template <Number T>
MakeDevice<T> faulty(typename FaultyDevice<T>::Fault fault, i64 nth) {
  return [=](comm::Communicator& comm, Product<T> product) -> std::unique_ptr<Device<T>> {
    return std::make_unique<FaultyDevice<T>>(comm, std::move(product), fault, nth);
  };
}

template <Number T>
std::unique_ptr<Device<T>> right_device(comm::Communicator& comm, Product<T> product) {
  return std::make_unique<Device<T>>(comm, std::move(product));
}

template <Number T>
Parameters<T> unchanged(const Parameters<T>& whole) {
  return whole;
}

/// Exchanges rows of layer 1's weights between the shards of devices 0 and 1 in column->row, as
/// many as both have. For two-layer parameters; requires two devices.
template <Number T>
Parameters<T> with_exchanged_shards(Parameters<T> whole, int devices) {
  Matrix<T>& weights = whole.at(weights_name(1));
  const Parts parts = parts_of("hidden units", weights.rows(), devices);
  const i64 n = std::min(parts[0].size(), parts[1].size());
  for (i64 i = 0; i < n; ++i) {
    const auto mine = weights.row(parts[0].begin + i);
    std::swap_ranges(mine.begin(), mine.end(), weights.row(parts[1].begin + i).begin());
  }
  return whole;
}

/// Drops the hidden units beyond the last multiple of `devices`, like `hidden // devices` does. For
/// two-layer parameters.
template <Number T>
Parameters<T> without_tail(const Parameters<T>& whole, int devices) {
  const Interval kept{0, two_layers(whole).hidden / devices * devices};
  Parameters<T> result = whole;
  result[weights_name(0)] = slice(whole.at(weights_name(0)), Axis::kColumns, kept);
  result[weights_name(1)] = slice(whole.at(weights_name(1)), Axis::kRows, kept);
  if (const Matrix<T>* bias = find(whole, bias_name(0))) {
    result[bias_name(0)] = slice(*bias, Axis::kColumns, kept);
  }
  return result;
}

}  // namespace

template <Number T>
Matrix<T> FaultyDevice<T>::all_reduce(const Matrix<T>& summand) {
  if (n_calls_++ != nth_) return Device<T>::all_reduce(summand);
  if (fault_ == Fault::kLeftOut) return summand;
  return Device<T>::all_reduce(Device<T>::all_reduce(summand));
}

template <Number T>
Parameters<T> with_exchanged_experts(const Parameters<T>& whole) {
  constexpr std::string_view kFirst = "expert_0/";
  constexpr std::string_view kSecond = "expert_1/";
  Parameters<T> result = whole;
  for (auto& [name, array] : result) {
    const std::string rest = name.substr(std::min(name.size(), kFirst.size()));
    if (name.starts_with(kFirst)) array = whole.at(std::string(kSecond) + rest);
    if (name.starts_with(kSecond)) array = whole.at(std::string(kFirst) + rest);
  }
  return result;
}

template <Number T>
std::vector<PlantedFault<T>> all_faults(i64 hidden, int devices) {
  using Fault = typename FaultyDevice<T>::Fault;
  std::vector<PlantedFault<T>> faults;
  if (devices > 1) {
    faults.push_back(
        {"two shards of layer_1/weights exchanged", "column->row", right_device<T>,
         [=](const Parameters<T>& whole) { return with_exchanged_shards(whole, devices); }});
  }
  // column->row: all_reduce 0 is for y, 1 for dx.
  faults.push_back(
      {"the all_reduce of y left out", "column->row", faulty<T>(Fault::kLeftOut, 0), unchanged<T>});
  faults.push_back({"the all_reduce of dx left out", "column->row", faulty<T>(Fault::kLeftOut, 1),
                    unchanged<T>});
  // data parallel reduces in name order: layer_0/bias, layer_0/weights, ...
  faults.push_back({"the gradient of layer_0/weights reduced twice", "data parallel, sum",
                    faulty<T>(Fault::kTwice, 1), unchanged<T>});
  faults.push_back(
      {"two experts exchanged", "expert parallel", right_device<T>, with_exchanged_experts<T>});
  if (hidden % devices != 0) {
    faults.push_back({"the tail of hidden // devices dropped", "column->row", right_device<T>,
                      [=](const Parameters<T>& whole) { return without_tail(whole, devices); }});
  }
  return faults;
}

template <Number T>
CaseReport plant(comm::Communicator& comm, const PlantedFault<T>& fault, const SystemCase<T>& one,
                 const Product<T>& product) {
  const auto device = fault.device(comm, product);
  return report_on(*device, one, fault.checkpoint(one.example.parameters));
}

template class FaultyDevice<Field>;
template Parameters<Field> with_exchanged_experts(const Parameters<Field>&);
template std::vector<PlantedFault<Field>> all_faults(i64, int);
template CaseReport plant(comm::Communicator&, const PlantedFault<Field>&, const SystemCase<Field>&,
                          const Product<Field>&);
template class FaultyDevice<double>;
template Parameters<double> with_exchanged_experts(const Parameters<double>&);
template std::vector<PlantedFault<double>> all_faults(i64, int);
template CaseReport plant(comm::Communicator&, const PlantedFault<double>&,
                          const SystemCase<double>&, const Product<double>&);
template class FaultyDevice<float>;
template Parameters<float> with_exchanged_experts(const Parameters<float>&);
template std::vector<PlantedFault<float>> all_faults(i64, int);
template CaseReport plant(comm::Communicator&, const PlantedFault<float>&, const SystemCase<float>&,
                          const Product<float>&);
}  // namespace shardtool::tutorial
