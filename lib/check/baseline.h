#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "shardtool/check/findings.h"

namespace shardtool::check {

/// Findings that are known: the same rule about the same tensor, rank and file. A file is known by
/// its name alone, so that a checkpoint may move.
///
///     {"format_version": "1.0", "findings": [{"id": "ST0404", "file": "config.json",
///      "tensor": "model.embed_tokens.weight", "count": 1}]}
class Baseline {
 public:
  /// Throws kUsage with the place where the text is no baseline.
  static Baseline parse(std::string_view text, const std::string& path);
  static Baseline of(const std::vector<Finding>& findings);

  std::string to_json() const;
  /// Takes a finding off the list; false when it is not (or no longer) on it.
  bool take(const Finding& finding);

 private:
  using Key = std::tuple<std::string, std::string, std::string, i64>;  ///< id, file, tensor, rank
  static Key key_of(const Finding& finding);

  std::map<Key, i64> known_;  ///< how many of each
};

}  // namespace shardtool::check
