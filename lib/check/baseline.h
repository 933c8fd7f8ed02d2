#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "lib/check/findings.h"

namespace shardtool::check {

/// Findings that are known: the same rule about the same tensor, rank and file. A file is known by
/// its path from `root`, and one outside of it by its absolute path, however the checkpoint was
/// named on the command line. The root is relative to the folder of the baseline file, so that
/// both may move together.
///
///     {"format_version": "2.0", "root": ".", "findings": [{"id": "ST0404",
///      "file": "out/tp4/config.json", "tensor": "model.embed_tokens.weight", "count": 1}]}
class Baseline {
 public:
  /// `path` is that of the file. Throws kUsage with the place where the text is no baseline, and
  /// for one of version 1, which knew files by their names alone.
  static Baseline parse(std::string_view text, const std::string& path);
  /// For a file at `path`. The root is the working directory.
  static Baseline of(const std::vector<Finding>& findings, const std::string& path);

  std::string to_json() const;
  /// Takes a finding off the list; false when it is not (or no longer) on it.
  bool take(const Finding& finding);

 private:
  using Key = std::tuple<std::string, std::string, std::string, i64>;  ///< id, file, tensor, rank
  Key key_of(const Finding& finding) const;
  std::string known_path(const std::string& file) const;

  std::string stated_root_;     ///< as the file says it
  std::filesystem::path root_;  ///< absolute, without symbolic links
  std::map<Key, i64> known_;    ///< how many of each
};

}  // namespace shardtool::check
