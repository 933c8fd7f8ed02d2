#pragma once

#include <deque>
#include <string>

#include "shardtool/io/file.h"

namespace shardtool::io {

/// The files in the hidden folder of an output, while they are written by this process.
class OutputFiles {
 public:
  explicit OutputFiles(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  /// The path of a plain name. Throws kWriteFailed for any other.
  std::string path_of(const std::string& name) const;

  /// Opens a file that is there, or creates it. The reference stays valid until clear().
  File& open(const std::string& name);
  /// Creates a file. Throws kOutputExists when the name is taken.
  File& create(const std::string& name);

  /// Makes all files and their names durable as they are now. Throws kWriteFailed; after one
  /// failure always, since the system may have forgotten what it could not write.
  void sync();
  /// Closes all; throws kWriteFailed when the system reports an error.
  void close_checked();
  void clear() { files_.clear(); }

 private:
  std::string folder_;
  bool sync_failed_ = false;
  std::deque<File> files_;
};

}  // namespace shardtool::io
