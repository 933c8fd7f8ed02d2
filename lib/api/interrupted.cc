#include "lib/api/interrupted.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "lib/api/transfer/joined_shares.h"
#include "lib/api/transfer/output_checks.h"
#include "lib/api/transfer/run_note.h"
#include "lib/api/transfer/share_record.h"
#include "lib/api/transfer/store/leftovers.h"
#include "lib/base/error.h"
#include "lib/base/shell.h"
#include "lib/store/local/output_claim.h"
#include "lib/store/local/tree.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;

/// Nanoseconds of the last change of any hidden file of a run.
i64 last_change_ns(const store::HiddenRun& run) {
  std::vector<std::string> paths = store::hidden_journals(run.place, run.id);
  std::ranges::move(store::hidden_records(run.place, run.id), std::back_inserter(paths));
  paths.push_back(store::hidden_folder(run.place, run.id));
  paths.push_back(store::hidden_replaced(run.place, run.id));
  i64 last = 0;
  for (const std::string& path : paths) {
    if (const auto found = store::identity_at(path)) last = std::max(last, found->mtime_ns);
  }
  return last;
}

i64 seconds_since(i64 then_ns) {
  using namespace std::chrono;
  const auto now = system_clock::now().time_since_epoch();
  return std::max<i64>(duration_cast<seconds>(now - nanoseconds(then_ns)).count(), 0);
}

/// Adds what the journals of a run say. Throws kOtherRun for a journal of another user or run.
void read_journals(const store::HiddenRun& run, InterruptedRun& found) {
  std::set<size_t> finished;
  for (const std::string& path : store::hidden_journals(run.place, run.id)) {
    const auto title = exec::journal_title(path);
    if (!title) continue;
    if (parse_run_identity(title->run).id() != run.id) {
      throw Error(ErrorCode::kOtherRun, "the journal is of another run than its name")
          .at({path, 0, 0, {}})
          .help("delete it yourself if nothing needs it");
    }
    for (const auto& [tensor, copied] : exec::read_journal(path, title->run)) {
      finished.insert(tensor);
    }
    const RunNote note = parse_run_note(title->about, path);
    found.output = note.output;
    found.command = note.command;
    found.started_in = note.started_in;
    found.tensors = note.tensors;
    found.shares = note.shares;
  }
  found.tensors_finished = std::ssize(finished);
}

/// Throws kOtherRun for remains of another user.
InterruptedRun look_at(const store::HiddenRun& run) {
  InterruptedRun found;
  found.output = run.place.path();
  found.folder = store::hidden_folder(run.place, run.id);
  const std::string replaced = store::hidden_replaced(run.place, run.id);
  if (!store::identity_at(found.folder) && store::identity_at(replaced)) found.folder = replaced;
  const bool has_folder = store::identity_at(found.folder).has_value();
  if (has_folder) store::check_own_folder(found.folder);
  read_journals(run, found);
  if (has_folder) found.bytes = store::disk_bytes(found.folder);
  if (found.shares > 0) found.missing = missing_of(ended_shares(run.place, run.id), found.shares);
  found.is_running = store::is_locked(store::hidden_lock(run.place));
  found.seconds_ago = seconds_since(last_change_ns(run));
  return found;
}

/// Returns the hidden runs of one output.
std::vector<store::HiddenRun> runs_of(const store::OutputPlace& place) {
  std::vector<store::HiddenRun> runs = store::hidden_runs(place.parent);
  std::erase_if(
      runs, [&](const store::HiddenRun& run) { return run.place.hidden("") != place.hidden(""); });
  return runs;
}

/// Place of the output that a path names: by itself, or as a run's hidden folder.
store::OutputPlace output_place(const std::string& path) {
  const store::OutputPlace place = store::look_at_output(path);
  for (const store::HiddenRun& run : store::hidden_runs(place.parent)) {
    if (store::hidden_folder(run.place, run.id) == place.path()) {
      return store::look_at_output(run.place.path());
    }
  }
  return place;
}

}  // namespace

InterruptedRuns interrupted_runs(const std::string& folder) {
  if (store::is_remote(folder)) return runs_on_store(folder);
  // A mount point holds outputs, too, although it cannot be one: look_at_output would refuse it.
  const fs::path path = canonical_path(folder);
  std::vector<store::HiddenRun> hidden;
  if (path.has_filename() && fs::is_directory(path.parent_path())) {
    hidden = runs_of({.parent = path.parent_path(), .name = path.filename()});
  }
  if (fs::is_directory(path)) {
    std::ranges::move(store::hidden_runs(path), std::back_inserter(hidden));
  } else if (hidden.empty()) {
    throw Error(ErrorCode::kFileMissing, "there is neither a folder nor an interrupted run of it")
        .at({folder, 0, 0, {}})
        .help("name the folder that holds the output, or the output itself");
  }
  InterruptedRuns found;
  for (const store::HiddenRun& run : hidden) {
    try {
      found.runs.push_back(look_at(run));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kOtherRun) throw;
      ++found.of_others;
    }
  }
  return found;
}

InterruptedRuns discard_runs(const std::string& path) {
  if (store::is_remote(path)) return discard_on_store(path);
  const store::OutputPlace place = output_place(path);
  const std::vector<store::HiddenRun> hidden = runs_of(place);
  if (hidden.empty()) {
    throw Error(ErrorCode::kFileMissing, "no interrupted run left anything for this output")
        .at({path, 0, 0, {}})
        .help(fmt::format("shardtool resume --list {} shows what is there",
                          path_argument(place.parent)));
  }
  const store::OutputClaim claim(place.path(), store::Existing::kReplace);
  InterruptedRuns discarded;
  for (const store::HiddenRun& run : hidden) {
    InterruptedRun found = look_at(run);
    found.is_running = false;  // the lock that is held is this function's
    if (!claim.discard(run.id)) {
      throw Error(ErrorCode::kWriteFailed, "a part of the interrupted run could not be deleted")
          .at({found.folder, 0, 0, {}})
          .help("delete it yourself");
    }
    discarded.runs.push_back(std::move(found));
  }
  return discarded;
}

}  // namespace shardtool::api
