#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/tutorial/catalogue.h"

namespace shardtool::tutorial {

/// A device that does one of its all_reduces wrong.
template <Number T>
class FaultyDevice final : public Device<T> {
 public:
  enum class Fault {
    kLeftOut,  ///< returns its own summand as the sum
    kTwice,    ///< sums the sum again
  };
  /// `nth` counts from 0.
  FaultyDevice(comm::Communicator& comm, Product<T> product, Fault fault, i64 nth)
      : Device<T>(comm, std::move(product)), fault_(fault), nth_(nth) {}
  Matrix<T> all_reduce(const Matrix<T>& summand) override;

 private:
  Fault fault_;
  i64 nth_;
  i64 n_calls_ = 0;
};

/// Exchanges the parameters of experts 0 and 1. Requires two experts.
template <Number T>
Parameters<T> with_exchanged_experts(const Parameters<T>& whole);

/// A fault to plant in a system.
template <Number T>
struct PlantedFault {
  std::string name;
  std::string system;  ///< prefix of its case's name in the catalogue
  std::function<std::unique_ptr<Device<T>>(comm::Communicator&, Product<T>)> device;
  std::function<Parameters<T>(const Parameters<T>&)> checkpoint;  ///< modifies the correct one
};

/// Returns the faults that can occur on this number of devices: exchanged shards (from 2 devices
/// on), a missing all_reduce forward and backward, a gradient reduced twice, exchanged experts, a
/// dropped tail (if the devices do not divide `hidden`).
template <Number T>
std::vector<PlantedFault<T>> all_faults(i64 hidden, int devices);

/// Runs the fault's system with the fault. All devices call it, and get the same result.
template <Number T>
CaseReport plant(comm::Communicator& comm, const PlantedFault<T>& fault, const SystemCase<T>& one,
                 const Product<T>& product = times<T>);

}  // namespace shardtool::tutorial
