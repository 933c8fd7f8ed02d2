#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/tutorial/catalogue.h"

namespace shardtool::tutorial {

/// A device that does one of its all_reduces wrongly.
template <Number T>
class FaultyDevice final : public Device<T> {
 public:
  enum class Fault {
    kLeftOut,  ///< its own summand is taken for the sum
    kTwice,    ///< the sum is summed again
  };
  /// `nth` counts from 0.
  FaultyDevice(comm::Communicator& comm, Fault fault, i64 nth)
      : Device<T>(comm), fault_(fault), nth_(nth) {}
  Matrix<T> all_reduce(const Matrix<T>& summand) override;

 private:
  Fault fault_;
  i64 nth_;
  i64 n_calls_ = 0;
};

/// The parameters of two layers, with rows of layer 1's weights that two devices of column->row
/// would hold exchanged: those of devices 0 and 1, as many as both have. Requires two devices.
template <Number T>
Parameters<T> with_exchanged_shards(Parameters<T> whole, int devices);

/// The parameters of two layers as `hidden // devices` leaves them: hidden units beyond the last
/// multiple of `devices` are gone.
template <Number T>
Parameters<T> without_tail(const Parameters<T>& whole, int devices);

/// The parameters of experts, with experts 0 and 1 exchanged. Requires two experts.
template <Number T>
Parameters<T> with_exchanged_experts(const Parameters<T>& whole);

/// A fault to plant in a system.
template <Number T>
struct PlantedFault {
  std::string name;
  std::string system;  ///< how the name of its case in the catalogue begins
  std::function<std::unique_ptr<Device<T>>(comm::Communicator&)> device;
  std::function<Parameters<T>(const Parameters<T>&)> checkpoint;  ///< from the right one
};

/// The faults that show on this many devices: exchanged shards (from 2 devices on), a missing
/// all_reduce forward and backward, a gradient that is reduced twice, exchanged experts, a dropped
/// tail (where the devices do not divide `hidden`).
template <Number T>
std::vector<PlantedFault<T>> all_faults(i64 hidden, int devices);

/// Runs the system that the fault is for, with the fault. All devices call it, and get the same.
template <Number T>
CaseReport plant(comm::Communicator& comm, const PlantedFault<T>& fault, const SystemCase<T>& one);

}  // namespace shardtool::tutorial
