#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/model/priced_pass.h"

namespace shardtool::api {

/// Costs of a forward pass of a model under a mapping.
struct CostReport {
  std::string family;   ///< of the graph; empty without a graph
  std::string why_not;  ///< why there is no price; else empty
  std::optional<model::Price> price;
  /// Decode step for the sequences of one pipeline stage, which has 1 / stages of all, in
  /// microseconds. Every sequence gets a token in this time while all stages work. Set if there is
  /// a price and a profile.
  std::optional<double> stage_step_us;
  model::ReplicaWorkload workload;
  std::string profile;              ///< name of the profile; empty without one
  std::string untimed;              ///< why there are no times although there is hardware
  std::vector<std::string> unread;  ///< tensors that the graph does not read, such as scales
};

}  // namespace shardtool::api
