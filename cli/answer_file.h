#pragma once

#include <string>

namespace shardtool::cli {

/// A file that a command answers with. Processes of a launch answer with one voice: the one that
/// leads looks and writes, the others do nothing.

/// Throws kOutputExists when something has that name.
void require_free(const std::string& path);

/// Writes a new file. Throws kOutputExists, and what io::write_new_file throws.
void write_answer(const std::string& path, const std::string& text);

}  // namespace shardtool::cli
