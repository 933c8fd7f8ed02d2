#pragma once

#include <string>

#include "lib/io/file.h"

namespace shardtool::io {

/// Holds an exclusive flock on a file that it creates, and deletes the file when destroyed. The
/// system releases the lock of a killed process; the file that remains does no harm.
class FolderLock {
 public:
  /// Throws kOutputLocked when another process, or another FolderLock, holds it.
  explicit FolderLock(const std::string& path);
  ~FolderLock();
  FolderLock(FolderLock&&) noexcept = default;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  File file_;
};

}  // namespace shardtool::io
