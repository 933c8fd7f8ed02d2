#pragma once

#include <string_view>

#include "lib/exec/data_file.h"
#include "lib/exec/page_buffer.h"

namespace shardtool::exec {

/// Writes texts that come in pieces from the front of files on, past the page cache where the file
/// allows it: the pages that a cache takes for 100 MB of text cost more time than writing it.
class Appender {
 public:
  /// Throws kLimit when there is no memory.
  Appender() : buffer_(kBufferBytes) {}

  /// Goes on with the beginning of another file; what was appended before must be finished.
  void begin(const TargetFile& file);
  /// Throws what writing throws.
  void append(std::string_view text);
  /// Writes what is left.
  void finish();

 private:
  static constexpr i64 kBufferBytes = 1 << 20;

  PageBuffer buffer_;
  const TargetFile* file_ = nullptr;
  i64 offset_ = 0;  ///< in the file, of the buffer
  i64 used_ = 0;
};

}  // namespace shardtool::exec
