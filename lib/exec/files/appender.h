#pragma once

#include <string_view>

#include "lib/exec/files/data_file.h"
#include "lib/exec/files/page_buffer.h"

namespace shardtool::exec {

/// Appends pieces of text to files from their beginning, past the page cache if the file allows it:
/// for 100 MB of text, allocating cache pages takes longer than writing.
class Appender {
 public:
  /// Throws kLimit if memory runs out.
  Appender() : buffer_(kBufferBytes) {}

  /// Starts at the beginning of another file; earlier text must be finished.
  void begin(const TargetFile& file);
  /// Continues at this offset, which is not before the end of the last piece.
  void seek(i64 offset);
  /// Throws the errors of writing.
  void append(std::string_view text);
  /// Writes the rest of the buffer.
  void finish();

 private:
  static constexpr i64 kBufferBytes = 1 << 20;

  PageBuffer buffer_;
  const TargetFile* file_ = nullptr;
  i64 offset_ = 0;  ///< file offset of the buffer
  i64 used_ = 0;
};

}  // namespace shardtool::exec
