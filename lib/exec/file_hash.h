#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/base/checked.h"
#include "lib/exec/stream.h"

namespace shardtool::exec {

/// Hashes that the Hugging Face Hub publishes for a file.
enum class FileHash {
  kSha256,   ///< for files stored in LFS or Xet: the SHA-256 of the bytes
  kGitBlob,  ///< for files stored in git: the SHA-1 of "blob <size>\0" and the bytes
};

struct FileToHash {
  std::string path;
  i64 bytes = 0;  ///< its size
  FileHash hash = FileHash::kSha256;
};

/// Hashes every file, as lowercase hex in the given order. Reads each once, several at a time (one
/// thread a file, options.threads in all), within options.max_memory; progress counts bytes. Throws
/// kInterrupted when cancelled, kInputChanged when a size differs, and the errors of reading. One
/// file is limited by the hash speed of one core.
std::vector<std::string> hash_files(std::span<const FileToHash> files,
                                    const StreamOptions& options);

}  // namespace shardtool::exec
