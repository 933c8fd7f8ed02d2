#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "lib/mapping/document/glob.h"
#include "lib/mapping/document/glob_matcher.h"
#include "lib/mapping/match/pattern_set.h"

namespace shardtool::mapping {

/// A value that its first use makes. Several threads may use it at once.
template <class Value>
class Lazy {
 public:
  /// Returns the value. The first call makes it; if `make` throws, the next one does.
  template <class Make>
  const Value& of(Make make) const {
    const std::lock_guard guard(mutex_);
    if (!value_) value_.emplace(make());
    return *value_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::optional<Value> value_;
};

/// Compiled globs: all in one set, and each by itself.
struct GlobSet {
  /// Throws what PatternSet and GlobMatcher throw.
  explicit GlobSet(const std::vector<const Glob*>& globs);

  PatternSet set;
  std::vector<GlobMatcher> each;
};

/// The compiled patterns of a mapping's documents, made by what matches names first. They refer to
/// no document, so that mappings share them whose documents have the same patterns.
struct CompiledPatterns {
  Lazy<PatternSet> rules;    ///< of RuleMatcher
  Lazy<GlobSet> companions;  ///< "is", of Companions
  Lazy<GlobSet> dropped;     ///< "drop", of assign
  Lazy<PatternSet> entries;  ///< of unused_entries
};

}  // namespace shardtool::mapping
