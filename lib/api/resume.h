#pragma once

#include <map>
#include <string>

#include "shardtool/api/output_plan.h"
#include "shardtool/api/run_identity.h"
#include "shardtool/api/transform.h"
#include "shardtool/exec/journal.h"
#include "shardtool/io/output_folder.h"

namespace shardtool::api {

/// Whether the folder `output` already is what the run would write: its manifest says the same of
/// everything but the data, and its files have their sizes.
bool is_complete(const std::string& output, const LogicalCheckpoint& source,
                 const TargetLayout& target, const OutputPlan& plan);

/// Throws kOtherRun when an interrupted run of this output has finished something, but had another
/// source, mapping or options.
void check_same_run(const io::OutputClaim& claim, const RunIdentity& run);

/// The finished tensors that an interrupted run left.
struct TakenUp {
  std::map<size_t, exec::CopiedTensor> tensors;  ///< by their number in the target
  i64 bytes = 0;                                 ///< of their shards
  i64 damaged = 0;                               ///< others whose bytes are no longer right
};

/// Reads the journal, and every byte that it vouches for: what is not as it was written does not
/// count. Throws what reading throws, and kInterrupted.
TakenUp take_up(exec::Journal& journal, const LogicalCheckpoint& source, const TargetLayout& target,
                const OutputPlan& plan, std::span<const exec::TargetFile> files,
                const exec::StreamOptions& options);

/// After a failure: keeps the hidden folder when that is worth it and the failure left the data
/// alone, and tells how in the error. Never throws.
void keep_for_resume(Error& error, exec::Journal& journal, io::OutputFolder& folder,
                     const TakenUp& taken_up, i64 worth_keeping) noexcept;

}  // namespace shardtool::api
