#pragma once

#include <deque>
#include <span>
#include <string>

#include "lib/io/file.h"

namespace shardtool::io {

/// A file of an output and its final size.
struct WrittenFile {
  std::string name;
  i64 bytes = 0;
};

/// The files in the hidden folder of an output, while they are written by this process.
class OutputFiles {
 public:
  explicit OutputFiles(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  /// The path of a plain name. Throws kWriteFailed for any other.
  std::string path_of(const std::string& name) const;

  /// Opens a file that a run of this user left, or creates it. Throws kOtherRun. The reference
  /// stays valid until clear().
  File& open(const std::string& name);
  /// Creates a file. Throws kOutputExists when the name is taken.
  File& create(const std::string& name);

  /// Makes all files and their names durable as they are now. Throws kWriteFailed; after one
  /// failure always, since the system may have forgotten what it could not write.
  void sync();
  /// Throws kWriteFailed unless every expected name is, in the folder, the file that was opened
  /// here, and has its size.
  void check_complete(std::span<const WrittenFile> expected) const;
  /// Deletes every other name in the folder. Throws kWriteFailed.
  void remove_others(std::span<const WrittenFile> expected) const;
  /// Closes all; throws kWriteFailed when the system reports an error.
  void close_checked();
  void clear() { files_.clear(); }

 private:
  std::string folder_;
  bool sync_failed_ = false;
  std::deque<File> files_;
};

}  // namespace shardtool::io
