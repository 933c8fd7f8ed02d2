#pragma once

#include <string>
#include <string_view>

namespace shardtool {

/// Quotes a word for a POSIX shell: unchanged if safe, otherwise in single quotes.
std::string shell_quoted(std::string_view word);

/// The same for a path as an argument of a command: one that begins with '-' gets "./" in front.
std::string path_argument(std::string_view path);

}  // namespace shardtool
