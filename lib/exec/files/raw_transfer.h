#pragma once

#include <string>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::exec {

/// Baseline throughput of a machine with whole files, to compare moves with. All functions throw
/// the errors of lib/store, and kInterrupted once interrupted.
struct RawOptions {
  int threads = 4;
  i64 direct_block = 4 << 20;  ///< bytes of a request past the page cache; whole pages
};

/// Copies a file through the page cache, like cp, and syncs the copy.
void copy_buffered(const std::string& from, const std::string& to);

/// Creates files of `bytes` each and syncs them, one thread a file. Writes `content` repeatedly,
/// past the page cache if the file system supports it.
void write_files(const std::vector<std::string>& paths, i64 bytes, const std::string& content,
                 const RawOptions& options);

enum class ReadBy { kPageCache, kDirect };

/// Reads a whole file once, its blocks distributed over the threads.
void read_file(const std::string& path, ReadBy way, const RawOptions& options);

/// Digests this many bytes on one thread, as a move does: CRC-64 and XXH3-128.
void digest_memory(i64 bytes);

}  // namespace shardtool::exec
