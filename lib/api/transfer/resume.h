#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lib/api/transfer/output_plan.h"
#include "lib/api/transfer/run_identity.h"
#include "lib/api/transfer/write_files.h"
#include "lib/exec/journal.h"
#include "lib/store/local/output_folder.h"

namespace shardtool::api {

/// Finished tensors of an interrupted run.
struct TakenUp {
  exec::FinishedTensors tensors;
  i64 bytes = 0;             ///< of their shards
  std::set<size_t> damaged;  ///< tensors that were finished, and whose bytes have changed since
};

/// Files of an output that a process writes to, and what is finished in them.
struct OutputState {
  std::span<const exec::TargetFile> files;
  exec::Journal& journal;          ///< its own
  exec::FinishedTensors finished;  ///< by all journals of the run
  bool has_old_padding = false;    ///< the content of padding is unknown
};

/// Tensors that a process has moved, with those that it found finished.
struct MovedTensors {
  TakenUp taken_up;
  exec::FinishedTensors all;
};

/// Moves the tensors that `is_mine` selects, except those that are finished and intact. Throws the
/// errors of reading and writing; the journal then has notes of all that is finished.
MovedTensors move_tensors(const WriteRun& run, const std::vector<bool>& is_mine,
                          std::span<const exec::SourceFile> sources, OutputState state,
                          const exec::Resources& resources);

/// Returns the tensors that any journal of a run lists as finished. Throws the errors of reading.
exec::FinishedTensors finished_tensors(const store::OutputPlace& place,
                                       const RunIdentity& identity);

/// Commits what is finished; a tensor that cannot be committed counts as not finished.
void commit_finished(exec::Journal& journal) noexcept;

/// False for errors that a retry with the data of before cannot fix.
bool leaves_data_alone(ErrorCode code);

/// After a failure: keeps the hidden folder if it has enough finished data and the failure did not
/// affect it, and adds the way to resume to the error. Never throws.
void keep_for_resume(Error& error, const WriteRun& run, const RunIdentity& identity,
                     store::OutputFolder& folder, i64 worth_keeping) noexcept;

}  // namespace shardtool::api
