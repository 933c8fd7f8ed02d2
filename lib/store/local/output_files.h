#pragma once

#include <deque>
#include <span>
#include <string>

#include "lib/store/local/file.h"

namespace shardtool::store {

/// File of an output and its final size.
struct WrittenFile {
  std::string name;
  i64 bytes = 0;
};

/// Files in the hidden folder of an output, while this process writes them.
class OutputFiles {
 public:
  explicit OutputFiles(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  /// Path of a plain name. Throws kWriteFailed for any other name.
  std::string path_of(const std::string& name) const;

  /// Opens a file that a run of this user left, or creates it. Throws kOtherRun. The reference
  /// stays valid until clear().
  File& open(const std::string& name);
  /// Creates a file. Throws kOutputExists if the name is taken.
  File& create(const std::string& name);

  /// Makes all files and their names durable. Throws kWriteFailed, and always does so after one
  /// failure, since the system may have discarded data that it could not write.
  void sync();
  /// Throws kWriteFailed unless every expected name in the folder is still the file that was opened
  /// here and has the expected size.
  void check_complete(std::span<const WrittenFile> expected) const;
  /// Deletes every other name in the folder. Throws kWriteFailed.
  void remove_others(std::span<const WrittenFile> expected) const;
  /// Closes all files; throws kWriteFailed when the system reports an error.
  void close_checked();
  void clear() { files_.clear(); }

 private:
  std::string folder_;
  bool sync_failed_ = false;
  std::deque<File> files_;
};

}  // namespace shardtool::store
