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

/// The hash of every file in lower-case hex, in the order given. Reads each once, several at a time
/// (one thread a file, resources.threads in all), within resources.max_memory; progress counts
/// bytes. Throws kInterrupted once interrupted, kInputChanged for a file of another size than
/// given, and the errors of reading. One file is as fast as one core hashes.
std::vector<std::string> hash_files(std::span<const FileToHash> files, const Resources& resources);

}  // namespace shardtool::exec
