#pragma once

#include <string>
#include <string_view>

namespace shardtool {

/// Quotes a word for a POSIX shell: unchanged if safe, otherwise in single quotes. If a message
/// shows characters of it escaped, such as bytes that are not UTF-8: in $'...', which bash and zsh
/// read.
std::string shell_quoted(std::string_view word);

/// The same for a path as an argument of a command: one that begins with '-' gets "./" in front.
std::string path_argument(std::string_view path);

}  // namespace shardtool
