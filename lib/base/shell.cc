#include "lib/base/shell.h"

#include <algorithm>
#include <cctype>

#include "lib/base/text.h"

namespace shardtool {
namespace {

/// Quotes a word as bash and zsh read escapes, so that what a message shows of it is the word.
std::string quoted_with_escapes(std::string_view word) {
  std::string quoted = "$'";
  while (!word.empty()) {
    if (word.front() == '\'' || word.front() == '\\') quoted += '\\';
    word.remove_prefix(append_escaped_character(quoted, word));
  }
  return quoted + "'";
}

}  // namespace

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view kSafe = "%+,-./:=@_";
  const bool safe = !word.empty() && std::all_of(word.begin(), word.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || kSafe.find(c) != std::string_view::npos;
  });
  if (safe) return std::string(word);
  if (quote_for_message(word, word.npos) != word) return quoted_with_escapes(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string path_argument(std::string_view path) {
  return shell_quoted((path.starts_with('-') ? "./" : "") + std::string(path));
}

}  // namespace shardtool
