#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "lib/check/findings.h"

namespace shardtool::check {

/// Known findings: the same rule about the same tensor, rank and file. A file is identified by its
/// path from `root`, or outside of it by its absolute path, independent of the checkpoint's
/// spelling on the command line. The root is relative to the folder of the baseline file, so that
/// both may move together.
///
///     {"format_version": "2.0", "root": ".", "findings": [{"id": "ST0404",
///      "file": "out/tp4/config.json", "tensor": "model.embed_tokens.weight", "count": 1}]}
class Baseline {
 public:
  /// Parses the file at `path`. Throws kUsage with the place if the text is not a baseline, and for
  /// version 1, which identified files by name alone.
  static Baseline parse(std::string_view text, const std::string& path);
  /// Baseline for a file at `path`. The root is the working directory.
  static Baseline of(const std::vector<Finding>& findings, const std::string& path);

  std::string to_json() const;
  /// Removes a finding from the list; returns false if it is not (or no longer) on it.
  bool take(const Finding& finding);

 private:
  using Key = std::tuple<std::string, std::string, std::string, i64>;  ///< id, file, tensor, rank
  Key key_of(const Finding& finding) const;
  std::string known_path(const std::string& file) const;

  std::string stated_root_;     ///< as written in the file
  std::filesystem::path root_;  ///< absolute, without symbolic links
  std::map<Key, i64> known_;    ///< count per key
};

}  // namespace shardtool::check
