#pragma once

#include <string>

namespace shardtool::store {

/// Location of an output folder and its current content.
struct OutputPlace {
  enum class Found { kNothing, kEmptyFolder, kContent };

  std::string parent;  ///< absolute, without links, "." and ".."
  std::string name;    ///< one plain name
  Found found = Found::kNothing;

  std::string path() const;
  /// Hidden path in the same folder, ".NAME.shardtool" + suffix. A name of more than 190 bytes is
  /// truncated and ends in a hash of the whole one, so that the result is a valid name.
  std::string hidden(const std::string& suffix) const;
};

/// Examines a path that may be relative and end in slashes, "." or "..". Links in the parent are
/// resolved here, once. Throws kOutputExists if the path is a file, kOutputAliasesInput if it is a
/// symbolic link, kWriteFailed if the parent is missing or on an
/// object_mount (mount.h), or the path is a mount point.
OutputPlace look_at_output(const std::string& path);

}  // namespace shardtool::store
