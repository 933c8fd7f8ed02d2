#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "lib/mapping/document/document.h"
#include "lib/mapping/document/name_form.h"

namespace re2 {
class RE2;
}

namespace shardtool::mapping {

/// A set of compiled patterns that are matched against whole names in one pass (RE2::Set). Several
/// threads may use it at once.
class PatternSet {
 public:
  /// Throws kLimit above 20,000 patterns, and if the patterns need too much memory.
  explicit PatternSet(std::vector<Pattern> patterns);
  ~PatternSet();
  PatternSet(PatternSet&&) noexcept;

  /// Returns true if the pattern does not depend on numbers (NumberUse::kAnyAlike).
  bool takes_any_number(size_t pattern) const;
  /// Returns true if no pattern depends on numbers.
  bool takes_any_number() const;
  /// Returns the indices of the matching patterns, ascending. Throws kLimit if matching takes too
  /// much memory.
  std::vector<int> match(std::string_view name) const;
  /// One pattern by itself, with its captures. It is compiled at the first call.
  const re2::RE2& at(size_t pattern) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Matches names against a set, which must outlive it. If no pattern depends on numbers, the result
/// is cached by the name's form.
class NameMatcher {
 public:
  explicit NameMatcher(const PatternSet& set) : set_(set), is_by_form_(set.takes_any_number()) {}

  /// Returns what PatternSet::match returns, and throws what it throws. Valid until the next call.
  const std::vector<int>& match(std::string_view name);

 private:
  const PatternSet& set_;
  bool is_by_form_;
  ByForm<std::vector<int>> by_form_;
  std::vector<int> last_;  ///< result for names whose results are not cached
  NumberedName numbered_;  ///< of the current name
};

}  // namespace shardtool::mapping
