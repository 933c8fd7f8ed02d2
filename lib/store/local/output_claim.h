#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/store/local/folder_lock.h"
#include "lib/store/local/output_place.h"

namespace shardtool::store {

/// Policy for an output that already has content.
enum class Existing { kRefuse, kReplace };

/// Error for an output whose content may not be replaced.
Error output_exists(const std::string& path);

/// Throws kWriteFailed if this process may not delete the files of the folder that is there.
void require_deletable(const OutputPlace& place);

/// Hidden files of a run in the parent folder of its output, while it is written and after an
/// interruption:
///
///     parent/.NAME.shardtool.lock              flock of the run: exclusive, or of all its shares
///     parent/.NAME.shardtool-<id>.tmp/         the files of the run `id`, until they are renamed
///     parent/.NAME.shardtool-<id>.old/         while an output is replaced: the new one, until it
///                                              takes the name, then the one before
///     parent/.NAME.shardtool-<id>.<n>.journal  finished work of its process n in these files
///                                              (exec/journal.h)
///     parent/.NAME.shardtool-<id>.<i>-of-<n>.share  a share that has ended
///                                              (api/transfer/share_record.h)
///
/// An id is 32 hexadecimal digits: equal for runs that write the same bytes from the same source.
std::string hidden_folder(const OutputPlace& place, const std::string& id);
std::string hidden_replaced(const OutputPlace& place, const std::string& id);
std::string hidden_lock(const OutputPlace& place);
std::string hidden_journal(const OutputPlace& place, const std::string& id, int process);
std::string hidden_record(const OutputPlace& place, const std::string& id, int share, int of);
/// Existing journals or records of a run, sorted. Throw kWriteFailed.
std::vector<std::string> hidden_journals(const OutputPlace& place, const std::string& id);
std::vector<std::string> hidden_records(const OutputPlace& place, const std::string& id);

/// Ids of the runs that left any hidden file of an output, sorted. Throws kWriteFailed.
std::vector<std::string> hidden_ids(const OutputPlace& place);

/// Run that left hidden files beside its output.
struct HiddenRun {
  OutputPlace place;  ///< a very long name is shortened; `found` is not looked at
  std::string id;
};
/// Every run that left hidden files in a folder, by output and id. Throws kWriteFailed.
std::vector<HiddenRun> hidden_runs(const std::string& folder);
/// Run whose hidden folder this is, also by another path to it; nullopt for any other folder.
std::optional<HiddenRun> run_of_folder(const std::string& path);

/// Right to write one output, held by one run at a time, or by shares of one run together.
class OutputClaim {
 public:
  /// Claims `path`, which may be an empty existing folder. Throws kOutputExists, kOutputLocked,
  /// kOutputAliasesInput (path is a symbolic link), kWriteFailed for the working folder, and as
  /// look_at_output.
  OutputClaim(const std::string& path, Existing existing, LockKind kind = LockKind::kExclusive);

  const OutputPlace& place() const { return place_; }
  /// hidden_ids() of earlier runs.
  std::vector<std::string> leftovers() const { return hidden_ids(place_); }
  /// Throws kWriteFailed for content that this process may not delete, or that an overlay file
  /// system cannot exchange with a new folder.
  void require_replaceable() const;
  /// Deletes the remains of a run. Returns false if some remain, or cannot be listed.
  bool discard(const std::string& id) const noexcept;
  /// Deletes the journals and records of a run.
  bool discard_journals(const std::string& id) const noexcept;
  /// Deletes the output that a killed run has replaced. Returns as discard().
  bool discard_replaced(const std::string& id) const noexcept;

 private:
  OutputPlace place_;
  FolderLock lock_;
};

}  // namespace shardtool::store
