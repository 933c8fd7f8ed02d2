#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/api/transform.h"
#include "lib/base/checked.h"

namespace shardtool::api {

/// Remains of a run beside its output (store/local/output_claim.h), of this user.
struct InterruptedRun {
  std::string output;  ///< path of the output
  std::string folder;  ///< hidden folder with the files of the run
  /// Command that the run was started with and its working folder; empty for a run without
  /// a record (a journal, or a table of uploads), and for one that the library was called for.
  std::vector<std::string> command;
  std::string started_in;
  bool is_running = false;     ///< a process holds the output's lock
  i64 tensors_finished = 0;    ///< that the run will not move again
  std::optional<i64> tensors;  ///< of the whole output; nullopt without a record
  int shares = 0;              ///< 0: the work is not shared
  std::vector<int> missing;    ///< shares that have not ended
  i64 bytes = 0;               ///< on disk, in the hidden folder
  i64 seconds_ago = 0;         ///< since the last change of a journal, a record or the folder

  /// True if --resume or a share finds work that it need not do again.
  bool can_go_on() const { return tensors_finished > 0; }
};

struct InterruptedRuns {
  std::vector<InterruptedRun> runs;  ///< by output
  i64 of_others = 0;                 ///< runs that another user left, or whose folder is a link
};

/// Runs whose outputs are directly in a folder, and those of the folder as an output. Throws
/// kFileMissing if there is neither, kWriteFailed and kManifestInvalid.
InterruptedRuns interrupted_runs(const std::string& folder);

/// Deletes the remains of the runs of one output, which `path` names: the output or a run's hidden
/// folder. Returns what was deleted. Never follows links. Throws kFileMissing if there are none,
/// kOutputLocked while a run goes on, kOtherRun for remains of another user or with a journal of
/// another run, and kWriteFailed.
InterruptedRuns discard_runs(const std::string& path);

}  // namespace shardtool::api
