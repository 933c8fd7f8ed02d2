#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace shardtool::cli {

/// Standard output, buffered. A reader that went away (`| head`) has all it wanted: what follows is
/// dropped silently. Any other failure to write is an error.
class Output {
 public:
  explicit Output(std::FILE* file) : file_(file) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(std::string_view text);
  /// Hands everything to the system. Throws kWriteFailed when any of it could not be written.
  void flush();

 private:
  std::FILE* file_;
  std::string buffer_;
};

}  // namespace shardtool::cli
