#include "lib/api/planning/source_reads.h"

#include <algorithm>

#include "lib/api/transfer/output_plan.h"
#include "lib/api/transfer/store/requests.h"
#include "lib/api/transfer/store/run.h"
#include "lib/api/transfer/transfer.h"
#include "lib/api/transfer/write_files.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

constexpr size_t kCountedRanks = 256;

/// Output files of a run for some ranks.
struct PlannedOutput {
  TargetLayout target;
  OutputPlan plan;
  std::vector<exec::TensorMove> moves;
};

/// Plans the output for these ranks; of all for none.
PlannedOutput planned_output(const LogicalCheckpoint& source, const AppliedMapping& applied,
                             const std::vector<i64>& ranks, const WriteOptions& options) {
  PlannedOutput output{sharded_target(source, applied, ranks), {}, {}};
  sort_by_name(source, output.target);
  output.plan = plan_output(source, output.target, options.max_file_size);
  output.moves = plan_moves(source, output.target, output.plan);
  return output;
}

/// Counts the requests if the output is on this machine.
SourceRequests requests_here(const LogicalCheckpoint& source, const PlannedOutput& output,
                             const WriteOptions& options) {
  const auto order = source_order(output.moves);
  return count_requests(source, output.moves, order, options);
}

/// Counts the requests if the output is on the store of the source.
SourceRequests requests_to_same_store(const LogicalCheckpoint& source, const PlannedOutput& output,
                                      const WriteOptions& options) {
  if (!can_stream(output.target)) return requests_here(source, output, options);
  const auto order = output_order(output.moves);
  const std::vector<bool> all(output.moves.size(), true);
  return count_requests_to_store({source, output.target, output.plan, output.moves, order, all},
                                 options, all);
}

}  // namespace

std::optional<SourceReads> source_reads(const LogicalCheckpoint& source,
                                        const AppliedMapping& applied) {
  const bool is_remote = std::ranges::any_of(
      source.files, [](const exec::SurveyedFile& file) { return store::is_remote(file.path); });
  if (!is_remote) return std::nullopt;
  const WriteOptions defaults{};
  SourceReads reads;
  const PlannedOutput all = planned_output(source, applied, {}, defaults);
  reads.together = requests_here(source, all, defaults);
  reads.to_same_store = requests_to_same_store(source, all, defaults);
  const auto ranks = std::min(static_cast<size_t>(applied.resolution.mesh.size()), kCountedRanks);
  for (size_t rank = 0; rank < ranks; ++rank) {
    const auto alone = planned_output(source, applied, {static_cast<i64>(rank)}, defaults);
    reads.alone.push_back(requests_here(source, alone, defaults));
  }
  return reads;
}

}  // namespace shardtool::api
