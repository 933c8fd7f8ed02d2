#pragma once

#include <string>
#include <vector>

namespace shardtool::store {

/// Names in a folder, without "." and "..", sorted. Throws kWriteFailed if the folder cannot be
/// listed.
std::vector<std::string> names_in(const std::string& folder);

/// Deletes a folder and its content; symbolic links are deleted, never followed. Deletes as much as
/// it can and returns false if something is left.
bool remove_tree(const std::string& path);

}  // namespace shardtool::store
