#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/comm/communicator.h"
#include "lib/engine/run/part.h"

namespace shardtool::engine {

/// Devices that exchange a value, and the processes that simulate them; both ascending.
struct ExchangeGroup {
  std::vector<i64> ranks;
  std::vector<int> processes;
};

/// Exchanges numbers as inference engines do: in the activations' dtype, with the communicator's
/// own collectives among the processes of a group. Devices of one process are added first, in f32
/// and in the order of ranks. All processes make the same calls.
class NativeExchange {
 public:
  /// `comm` adds numbers of this type itself.
  NativeExchange(comm::Communicator& comm, Dtype type) : comm_(comm), type_(type) {}

  Dtype type() const { return type_; }
  /// Replaces the parts of the group's devices in `value`, all of the same features, by their sum.
  void sum(const ExchangeGroup& group, Placed<float>& value);
  /// Returns the parts of all devices of the group. `headers` has their features, and `value` the
  /// numbers of this process' devices.
  Placed<float> gathered(const ExchangeGroup& group, const Placed<float>& headers, i64 tokens,
                         const Placed<float>& value);

 private:
  /// Returns the communicator of these processes; null if this process is alone or none of them.
  comm::Communicator* among(const std::vector<int>& processes);

  comm::Communicator& comm_;
  Dtype type_;
  std::map<std::vector<int>, std::unique_ptr<comm::Communicator>> among_;
};

}  // namespace shardtool::engine
