#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace shardtool::cli {

/// The text as it may leave for a terminal, in whatever format: line breaks, tabs and, where they
/// are on, the colours of Style stay; all else that a terminal would act on or show in another
/// order is escaped, and bytes that are no UTF-8. The escapes of characters are those of JSON, so
/// that a document keeps its meaning.
std::string terminal_text(std::string_view text, bool colours);

/// Writes it to standard error, as far as that works.
void write_to_stderr(std::string_view text, bool colours = false);

/// Standard output, buffered; all that is written passes through `terminal_text`. A reader that
/// went away (`| head`) has all it wanted: what follows is dropped silently. Any other failure to
/// write is an error.
class Output {
 public:
  explicit Output(std::FILE* file, bool colours = false) : file_(file), colours_(colours) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// Appends whole characters.
  void write(std::string_view text);
  /// Hands everything to the system. Throws kWriteFailed when any of it could not be written.
  void flush();

 private:
  std::FILE* file_;
  bool colours_;
  std::string buffer_;
};

}  // namespace shardtool::cli
