#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/api/transfer/output_plan.h"
#include "lib/api/transfer/run_identity.h"
#include "lib/api/transfer/write_files.h"
#include "lib/exec/journal.h"
#include "lib/store/local/output_folder.h"

namespace shardtool::api {

/// Returns the manifest of the folder `output` if the run is already complete: the manifest equals
/// the run's in everything but the data, has the files' SHA-256 if requested, and the files have
/// their sizes. Else nullopt. Throws kManifestInvalid.
std::optional<format::Manifest> complete_output(const std::string& output,
                                                const LogicalCheckpoint& source,
                                                const TargetLayout& target, const OutputPlan& plan,
                                                bool sha256);

/// Throws kOtherRun if an interrupted run of this output has finished tensors but had another
/// source, mapping or options.
void check_same_run(const store::OutputClaim& claim, const RunIdentity& run);

/// Finished tensors of an interrupted run.
struct TakenUp {
  exec::FinishedTensors tensors;
  i64 bytes = 0;    ///< of their shards
  i64 damaged = 0;  ///< finished tensors whose bytes have changed
};

/// Verifies the tensors that `is_mine` selects and the journals list as `finished`, and returns
/// those whose bytes all read back as written. Throws the errors of reading, and kInterrupted.
TakenUp take_up(const WriteRun& run, const std::vector<bool>& is_mine,
                exec::FinishedTensors finished, std::span<const exec::TargetFile> files,
                const exec::Resources& resources);

/// Returns the tensors that these journals of a run list as finished. Throws the errors of reading.
exec::FinishedTensors finished_in(const std::vector<std::string>& journals,
                                  const RunIdentity& identity);

/// After a failure: keeps the hidden folder if it has enough finished data and the failure did not
/// affect it, and adds the way to resume to the error. Never throws.
void keep_for_resume(Error& error, const WriteRun& run, const RunIdentity& identity,
                     store::OutputFolder& folder, i64 worth_keeping) noexcept;

}  // namespace shardtool::api
