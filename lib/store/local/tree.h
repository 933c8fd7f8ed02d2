#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::store {

/// Names in a folder, without "." and "..", sorted. Throws kWriteFailed if the folder cannot be
/// listed.
std::vector<std::string> names_in(const std::string& folder);

/// True if `inner` is `outer` or in it, by the names of both paths, which are without links.
bool is_within(const std::filesystem::path& inner, const std::filesystem::path& outer);
/// The same with links followed; false if the folders of a path cannot be looked at.
bool leads_into(const std::string& path, const std::string& folder);

/// Deletes a folder and its content; symbolic links are deleted, never followed. Deletes as much as
/// it can and returns false if something is left.
bool remove_tree(const std::string& path);

/// Returns 0 if this process may create and delete files in a folder, else the errno that says why
/// not.
int refusal_to_change(const std::string& folder);

/// Bytes of disk space that the files directly in a folder take. Files that disappear meanwhile
/// count nothing. Throws kWriteFailed if the folder cannot be listed.
i64 disk_bytes(const std::string& folder);

}  // namespace shardtool::store
