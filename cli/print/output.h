#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace shardtool::cli {

/// Makes text safe for a terminal, in every output format. Keeps line breaks, tabs and, if
/// `colours`, the sequences of Style. Escapes all other control and bidirectional characters and
/// bytes that are not UTF-8. Escapes follow JSON syntax, so that a document keeps its meaning.
std::string terminal_text(std::string_view text, bool colours);

/// Writes to standard error and ignores failures.
void write_to_stderr(std::string_view text, bool colours = false);

/// Buffered standard output; all text passes through `terminal_text`. If the reader has closed the
/// pipe (`| head`), further output is dropped silently. Any other write failure is an error.
class Output {
 public:
  explicit Output(std::FILE* file, bool colours = false) : file_(file), colours_(colours) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// Appends whole characters.
  void write(std::string_view text);
  /// Flushes the buffer. Throws kWriteFailed if a write fails.
  void flush();

 private:
  std::FILE* file_;
  bool colours_;
  std::string buffer_;
};

}  // namespace shardtool::cli
