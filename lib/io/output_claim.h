#pragma once

#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/io/folder_lock.h"
#include "lib/io/output_place.h"

namespace shardtool::io {

/// What to do when the output already has content.
enum class Existing { kRefuse, kReplace };

/// The error that the output has content which may not be replaced.
Error output_exists(const std::string& path);

/// What is beside an output while it is written, and after a run that was interrupted:
///
///     parent/.NAME.shardtool.lock              flock of the run, or of its process 0
///     parent/.NAME.shardtool-<id>.tmp/         the files of the run `id`, until they are renamed
///     parent/.NAME.shardtool-<id>.<n>.journal  what of them its process n has finished
///                                              (exec/journal.h)
///
/// An id is 32 hexadecimal digits: equal for runs that write the same bytes from the same source.
std::string hidden_folder(const OutputPlace& place, const std::string& id);
std::string hidden_journal(const OutputPlace& place, const std::string& id, int process);
/// The journals of a run that are there; sorted. Throws kWriteFailed.
std::vector<std::string> hidden_journals(const OutputPlace& place, const std::string& id);

/// The right to write one output, held by one run at a time.
class OutputClaim {
 public:
  /// `path` may be an empty existing folder. Throws kOutputExists, kOutputLocked,
  /// kOutputAliasesInput (path is a symbolic link), and what look_at_output throws.
  OutputClaim(const std::string& path, Existing existing);

  const OutputPlace& place() const { return place_; }
  /// The ids of earlier runs that left a folder or a journal; sorted.
  std::vector<std::string> leftovers() const;
  /// Deletes what a run left. False when something remains, or cannot be looked for.
  bool discard(const std::string& id) const noexcept;
  bool discard_journals(const std::string& id) const noexcept;

 private:
  OutputPlace place_;
  FolderLock lock_;
};

}  // namespace shardtool::io
