#include "lib/mapping/match/compiled_patterns.h"

namespace shardtool::mapping {
namespace {

std::vector<Pattern> patterns_of(const std::vector<const Glob*>& globs) {
  std::vector<Pattern> patterns;
  for (const Glob* glob : globs) patterns.push_back(pattern_of(*glob));
  return patterns;
}

std::vector<GlobMatcher> matchers_of(const std::vector<const Glob*>& globs) {
  std::vector<GlobMatcher> matchers;
  for (const Glob* glob : globs) matchers.emplace_back(*glob);
  return matchers;
}

}  // namespace

GlobSet::GlobSet(const std::vector<const Glob*>& globs)
    : set(patterns_of(globs)), each(matchers_of(globs)) {}

}  // namespace shardtool::mapping
