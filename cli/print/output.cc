#include "cli/print/output.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "cli/print/color.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

bool is_harmless(char c) {
  return (c >= ' ' && c <= '~') || c == '\n' || c == '\t';
}

/// Length of one of this program's colour sequences at the front of the text, or 0.
size_t own_colour(std::string_view text, bool colours) {
  if (!colours) return 0;
  for (const std::string_view sequence : Style::kSequences) {
    if (text.starts_with(sequence)) return sequence.size();
  }
  return 0;
}

}  // namespace

std::string terminal_text(std::string_view text, bool colours) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto* const end = std::find_if_not(text.begin(), text.end(), is_harmless);
    const auto plain = static_cast<size_t>(end - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const size_t own = own_colour(text, colours);
    out += text.substr(0, own);
    text.remove_prefix(own > 0 ? own : append_escaped_character(out, text));
  }
  return out;
}

void write_to_stderr(std::string_view text, bool colours) {
  const std::string safe = terminal_text(text, colours);
  std::fwrite(safe.data(), 1, safe.size(), stderr);
}

void Output::write(std::string_view text) {
  constexpr size_t kFlushAt = 1 << 16;
  buffer_ += terminal_text(text, colours_);
  if (buffer_.size() >= kFlushAt) flush();
}

void Output::flush() {
  errno = 0;
  const size_t written = std::fwrite(buffer_.data(), 1, buffer_.size(), file_);
  const bool complete = written == buffer_.size() && std::fflush(file_) == 0;
  buffer_.clear();
  if (complete || errno == EPIPE) return;
  throw Error(ErrorCode::kWriteFailed, "cannot write to standard output")
      .note("system", std::generic_category().message(errno));
}

}  // namespace shardtool::cli
