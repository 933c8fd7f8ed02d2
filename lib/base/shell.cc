#include "lib/base/shell.h"

#include <algorithm>
#include <cctype>

namespace shardtool {

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view kSafe = "%+,-./:=@_";
  const bool safe = !word.empty() && std::all_of(word.begin(), word.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || kSafe.find(c) != std::string_view::npos;
  });
  if (safe) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string path_argument(std::string_view path) {
  return shell_quoted((path.starts_with('-') ? "./" : "") + std::string(path));
}

}  // namespace shardtool
