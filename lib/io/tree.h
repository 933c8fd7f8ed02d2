#pragma once

#include <string>
#include <vector>

namespace shardtool::io {

/// The names in a folder, without "." and "..", sorted. Throws kWriteFailed when it cannot be
/// listed.
std::vector<std::string> names_in(const std::string& folder);

/// Deletes a folder and what is in it; symbolic links are deleted, never followed. False when
/// something is left. Deletes as much as it can.
bool remove_tree(const std::string& path);

}  // namespace shardtool::io
