#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shardtool::cli {

/// Output files of commands. In a launch of several processes only the leading one checks and
/// writes.

/// Throws kOutputExists if the path exists, kWriteFailed if no file can be created there.
void require_free(const std::string& path);
/// The same, but a file that begins with this text may be there: it will be replaced.
void require_free_or_begun(const std::string& path, std::string_view beginning);

/// Throws kOutputAliasesInput if a file to write is one of the checkpoints at `locations` or, links
/// followed, in the folder of one: reports replace what is there.
void require_apart(const std::string& path, std::span<const std::string> locations);

/// Writes a new file. Throws kOutputExists and the errors of store::write_new_file.
void write_answer(const std::string& path, const std::string& text);

/// Makes a file appear whole, in place of one that begins as the new one has to. Throws
/// kOutputExists for any other file, and the errors of store::put_whole.
void replace_answer(const std::string& path, std::string_view beginning, const std::string& text);

}  // namespace shardtool::cli
