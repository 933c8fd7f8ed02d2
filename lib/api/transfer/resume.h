#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/api/transfer/output_plan.h"
#include "lib/api/transfer/run_identity.h"
#include "lib/api/transfer/write_files.h"
#include "lib/exec/journal.h"
#include "lib/io/output_folder.h"

namespace shardtool::api {

/// Returns the manifest of the folder `output` when that already is what the run would write: the
/// manifest says the same of everything but the data, with the SHA-256 of the files when these are
/// wanted, and the files have their sizes. Else nullopt. Throws kManifestInvalid.
std::optional<checkpoint::Manifest> complete_output(const std::string& output,
                                                    const LogicalCheckpoint& source,
                                                    const TargetLayout& target,
                                                    const OutputPlan& plan, bool sha256);

/// Throws kOtherRun when an interrupted run of this output has finished something, but had another
/// source, mapping or options.
void check_same_run(const io::OutputClaim& claim, const RunIdentity& run);

/// The finished tensors that an interrupted run left.
struct TakenUp {
  exec::FinishedTensors tensors;
  i64 bytes = 0;    ///< of their shards
  i64 damaged = 0;  ///< others whose bytes are no longer right
};

/// Of the tensors that `is_mine` and that the journals say are `finished`, those whose every byte
/// is read back as it was written. Throws what reading throws, and kInterrupted.
TakenUp take_up(const Run& run, const std::vector<bool>& is_mine, exec::FinishedTensors finished,
                std::span<const exec::TargetFile> files, const exec::Resources& resources);

/// What these journals of a run say is finished. Throws what reading throws.
exec::FinishedTensors finished_in(const std::vector<std::string>& journals,
                                  const RunIdentity& identity);

/// After a failure: keeps the hidden folder when that is worth it and the failure left the data
/// alone, and tells how in the error. Never throws.
void keep_for_resume(Error& error, const Run& run, const RunIdentity& identity,
                     io::OutputFolder& folder, i64 worth_keeping) noexcept;

}  // namespace shardtool::api
