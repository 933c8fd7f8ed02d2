#pragma once

#include <string>
#include <vector>

#include "shardtool/base/error.h"
#include "shardtool/io/folder_lock.h"
#include "shardtool/io/output_place.h"

namespace shardtool::io {

/// What to do when the output already has content.
enum class Existing { kRefuse, kReplace };

/// The error that the output has content which may not be replaced.
Error output_exists(const std::string& path);

/// The right to write one output, held by one run at a time, and what earlier runs left of it:
///
///     parent/.NAME.shardtool.lock            flock for the whole run
///     parent/.NAME.shardtool-<id>.tmp/       the files of the run `id`, until they are renamed
///     parent/.NAME.shardtool-<id>.journal    what of them is finished (exec/journal.h)
///
/// An id is 32 hexadecimal digits: equal for runs that write the same bytes from the same source.
class OutputClaim {
 public:
  /// `path` may be an empty existing folder. Throws kOutputExists, kOutputLocked,
  /// kOutputAliasesInput (path is a symbolic link), and what look_at_output throws.
  OutputClaim(const std::string& path, Existing existing);

  const OutputPlace& place() const { return place_; }
  std::string folder_of(const std::string& id) const;
  std::string journal_of(const std::string& id) const;
  /// The ids of earlier runs that left a folder or a journal; sorted.
  std::vector<std::string> leftovers() const;
  /// Deletes what a run left. False when something remains.
  bool discard(const std::string& id) const;

 private:
  OutputPlace place_;
  FolderLock lock_;
};

}  // namespace shardtool::io
