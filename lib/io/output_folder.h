#pragma once

#include <string>
#include <vector>

#include "shardtool/io/file.h"

namespace shardtool::io {

/// What to do when the output already has content.
enum class Existing { kRefuse, kReplace };

/// A folder that appears complete or not at all:
///
///     parent/.NAME.shardtool.lock          flock for the whole run
///     parent/.NAME.shardtool-<id>.tmp/     all files are created here
///     parent/NAME                          renamed onto at the end, never over existing content
///
/// publish() syncs every file, the folder, renames without replacing (with kReplace: exchanges, then
/// deletes the old tree) and syncs the parent. Destroyed unpublished, it deletes what it created.
class OutputFolder {
 public:
  /// Checks and creates. `path` may be an empty existing folder. Throws kOutputExists,
  /// kOutputLocked, kOutputAliasesInput (path goes through a symbolic link), kWriteFailed.
  OutputFolder(const std::string& path, Existing existing);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// The temporary folder, with the final content's names.
  const std::string& working_path() const { return working_path_; }
  const std::string& final_path() const { return final_path_; }
  /// Bytes available to this user on the output's file system.
  i64 bytes_free() const;

  /// Creates a file inside (a plain name, no separators) that publish() will sync.
  File& create(const std::string& name);
  /// Makes everything durable and visible. Throws kWriteFailed; then nothing was published.
  void publish();

 private:
  std::string final_path_;
  std::string parent_;
  std::string working_path_;
  Existing existing_;
  bool replaces_folder_ = false;
  bool published_ = false;
  File lock_;
  std::vector<File> files_;
};

}  // namespace shardtool::io
