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

enum class Output { kLocal, kSameStore };

/// Requests of a run for these ranks; of all for none.
SourceRequests requests_of(const LogicalCheckpoint& source, const AppliedMapping& applied,
                           const std::vector<i64>& ranks, Output output = Output::kLocal) {
  TargetLayout target = sharded_target(source, applied, ranks);
  sort_by_name(source, target);
  const WriteOptions defaults{};
  const OutputPlan plan = plan_output(source, target, defaults.max_file_size);
  const auto moves = plan_moves(source, target, plan);
  if (output == Output::kSameStore && can_stream(target)) {
    const auto order = output_order(moves);
    const std::vector<bool> all(moves.size(), true);
    return count_requests_to_store({source, target, plan, moves, order, all}, defaults, all);
  }
  const auto order = source_order(moves);
  return count_requests(source, moves, order, defaults);
}

}  // namespace

std::optional<SourceReads> source_reads(const LogicalCheckpoint& source,
                                        const AppliedMapping& applied) {
  const bool is_remote = std::ranges::any_of(
      source.files, [](const exec::SurveyedFile& file) { return store::is_remote(file.path); });
  if (!is_remote) return std::nullopt;
  SourceReads reads;
  reads.together = requests_of(source, applied, {});
  reads.to_same_store = requests_of(source, applied, {}, Output::kSameStore);
  const auto ranks = std::min(static_cast<size_t>(applied.resolution.mesh.size()), kCountedRanks);
  for (size_t rank = 0; rank < ranks; ++rank) {
    reads.alone.push_back(requests_of(source, applied, {static_cast<i64>(rank)}));
  }
  return reads;
}

}  // namespace shardtool::api
