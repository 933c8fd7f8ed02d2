#pragma once

#include <span>
#include <string>

namespace shardtool::cli {

/// Output files of commands. In a launch of several processes only the leading one checks and
/// writes.

/// Throws kOutputExists if the path exists.
void require_free(const std::string& path);

/// Throws kOutputAliasesInput if a file to write is one of the checkpoints at `locations` or, links
/// followed, in the folder of one: reports replace what is there.
void require_apart(const std::string& path, std::span<const std::string> locations);

/// Writes a new file. Throws kOutputExists and the errors of store::write_new_file.
void write_answer(const std::string& path, const std::string& text);

}  // namespace shardtool::cli
