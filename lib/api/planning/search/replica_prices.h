#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "lib/api/plan_search.h"
#include "lib/api/planning/search/served_model.h"
#include "lib/model/price.h"
#include "lib/plan/open_load.h"

namespace shardtool::api {

inline constexpr double kSecondsPerHour = 3600;

/// Returns the time of a decode step in an engine: its collectives take what plan::us_in_step says,
/// and its launches what plan::EngineOverheads says.
model::Roofline step_in_engine(const model::PhasePrice& decode,
                               const plan::HardwareProfile& hardware);

/// Prices one replica for any load.
class ReplicaPrices {
 public:
  /// `layout` is that of the replica, whatever its dp. The arguments must outlive the prices.
  ReplicaPrices(const SearchOptions& options, const ServedModel& model,
                const PlacedReplica& replica, const ServingLayout& layout,
                const std::string& kv_dtype);

  /// Sets the row's service, offer and parts for its concurrency, or for the request rate, which
  /// sets the concurrency. A replica has `places` sequences in its caches, at least one. Times are
  /// those of a replica with most clients, tokens per second those of all replicas. Returns nullopt
  /// for a rate that is too high.
  std::optional<ServingRow> priced(ServingRow row, i64 places);
  /// Returns the sequences that take a step together: plan::AnswerTimes::stride.
  i64 stride() const;
  /// Returns the greatest rate of one replica.
  double most_requests_per_s(i64 places, bool sequence_parallel);

 private:
  /// Passes of `running` sequences. Each stage of a pipeline has its own batch of them, and a step
  /// takes the batches' time in turn, so that it is the mean of their steps. Sizes of the batches
  /// differ by one at most.
  struct Passes {
    model::Roofline smaller;
    model::Roofline larger;
    double larger_share = 0;  ///< of the batches
    model::Roofline prompts;
    i64 together = 1;

    double step_us() const {
      return (1 - larger_share) * smaller.step_us + larger_share * larger.step_us;
    }
  };

  Passes passes(i64 running, bool sequence_parallel);
  plan::Service service(i64 clients, i64 running, const Passes& passes) const;
  AnswerParts parts_of(const plan::Service& service, const Passes& passes) const;
  plan::AnswerTimes answers(i64 places, bool sequence_parallel);
  model::Roofline decode(i64 batch);
  model::Roofline prefill(i64 batch, bool sequence_parallel);

  const SearchOptions& options_;
  const PlacedReplica& replica_;
  i64 stages_;
  bool has_experts_;
  model::ReplicaWorkload workload_;
  std::map<i64, std::optional<model::Roofline>> steps_;
  std::map<std::pair<i64, bool>, std::optional<model::Roofline>> prompts_;
};

}  // namespace shardtool::api
