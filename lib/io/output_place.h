#pragma once

#include <string>

namespace shardtool::io {

/// Where an output folder goes, and what is there now.
struct OutputPlace {
  enum class Found { kNothing, kEmptyFolder, kContent };

  std::string parent;  ///< absolute, without links, "." and ".."
  std::string name;    ///< one plain name
  Found found = Found::kNothing;

  std::string path() const;
  /// A hidden path beside it, ".NAME.shardtool" + suffix. Of a very long name only the beginning is
  /// used, so that the result is a valid name; outputs that share it share the lock, too.
  std::string hidden(const std::string& suffix) const;
};

/// Looks at a path that may be relative and end in slashes, "." or "..". Links in the parent are
/// resolved here, once. Throws kOutputExists when a file is there, kOutputAliasesInput when it is a
/// symbolic link, kWriteFailed when the parent is missing or the path is a mount point.
OutputPlace look_at_output(const std::string& path);

}  // namespace shardtool::io
