#pragma once

#include <string>

namespace shardtool::cli {

/// Output files of commands. In a launch of several processes only the leading one checks and
/// writes.

/// Throws kOutputExists if the path exists.
void require_free(const std::string& path);

/// Writes a new file. Throws kOutputExists and the errors of store::write_new_file.
void write_answer(const std::string& path, const std::string& text);

}  // namespace shardtool::cli
