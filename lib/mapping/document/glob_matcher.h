#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/mapping/document/glob.h"

namespace re2 {
class RE2;
}

namespace shardtool::mapping {

/// A compiled glob that returns the texts of its wildcards.
class GlobMatcher {
 public:
  /// Throws kLimit if the glob needs too much memory.
  explicit GlobMatcher(const Glob& glob);
  ~GlobMatcher();
  GlobMatcher(GlobMatcher&&) noexcept;

  /// Returns the text of every wildcard, in order; nullopt if the whole name does not match.
  std::optional<std::vector<std::string>> match(std::string_view name) const;
  /// Returns the same as views into the name.
  std::optional<std::vector<std::string_view>> views(std::string_view name) const;

 private:
  std::unique_ptr<re2::RE2> pattern_;
};

/// Position of the number <name> among the wildcards of a glob that has it.
size_t position_of_number(const Glob& glob, const std::string& name);

}  // namespace shardtool::mapping
