#pragma once

#include <deque>
#include <string>

#include "shardtool/base/error.h"
#include "shardtool/io/file.h"
#include "shardtool/io/folder_lock.h"
#include "shardtool/io/output_place.h"

namespace shardtool::io {

/// What to do when the output already has content.
enum class Existing { kRefuse, kReplace };

/// A folder that appears complete or not at all:
///
///     parent/.NAME.shardtool.lock          flock for the whole run
///     parent/.NAME.shardtool-<id>.tmp/     all files are created here
///     parent/NAME                          renamed onto at the end
///
/// rename(2) puts a folder only where nothing or an empty folder is, on every file system, so
/// content that appeared meanwhile is never replaced. kReplace exchanges the two folders in one
/// step and then deletes the old tree: whoever reads NAME sees one complete version. A killed run
/// leaves the hidden folder; the next run of this output deletes it.
///
/// O1 unpublished, nothing under NAME has changed
/// O2 the destructor deletes everything hidden that this object created
class OutputFolder {
 public:
  /// Checks and creates. `path` may be an empty existing folder. Throws kOutputExists,
  /// kOutputLocked, kOutputAliasesInput (path is a symbolic link), kNoSpace, kWriteFailed.
  OutputFolder(const std::string& path, Existing existing);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// The temporary folder, with the final content's names.
  const std::string& working_path() const { return working_path_; }
  const std::string& final_path() const { return final_path_; }
  /// Bytes available to this user on the output's file system.
  i64 bytes_free() const;

  /// Creates a file inside (a plain name, no separators) that publish() will sync and close. The
  /// reference stays valid until then.
  File& create(const std::string& name);
  /// Makes everything durable and visible, once. Throws kWriteFailed or kOutputExists (content
  /// appeared meanwhile); then nothing was published, or the error's "state" note says what is.
  void publish();
  /// Where replaced content still lies because it could not be deleted; empty when there is none.
  const std::string& leftover() const { return leftover_; }

 private:
  void put_in_place();
  void withdraw(Error& error);

  OutputPlace place_;
  std::string final_path_;
  FolderLock lock_;
  std::string working_path_;
  std::string leftover_;
  bool finished_ = false;  ///< the hidden folder is gone, or no longer ours to delete
  std::deque<File> files_;
};

}  // namespace shardtool::io
