#include "lib/mapping/document/glob_matcher.h"

#include <re2/re2.h>

#include <algorithm>

#include "lib/base/error.h"

namespace shardtool::mapping {

using re2::RE2;

GlobMatcher::GlobMatcher(const Glob& glob)
    : pattern_(std::make_unique<RE2>(glob.regex_of_groups(), RE2::Quiet)) {
  if (!pattern_->ok())
    throw Error(ErrorCode::kLimit, "a pattern is too large: " + pattern_->error())
        .help("write a shorter pattern: ** stands for any text");
}
GlobMatcher::~GlobMatcher() = default;
GlobMatcher::GlobMatcher(GlobMatcher&&) noexcept = default;

std::optional<std::vector<std::string>> GlobMatcher::match(std::string_view name) const {
  const auto texts = views(name);
  if (!texts) return std::nullopt;
  return std::vector<std::string>(texts->begin(), texts->end());
}

std::optional<std::vector<std::string_view>> GlobMatcher::views(std::string_view name) const {
  std::vector<re2::StringPiece> groups(static_cast<size_t>(pattern_->NumberOfCapturingGroups()) +
                                       1);
  const bool matches =
      pattern_->Match(re2::StringPiece(name.data(), name.size()), 0, name.size(), RE2::ANCHOR_BOTH,
                      groups.data(), static_cast<int>(groups.size()));
  if (!matches) return std::nullopt;
  std::vector<std::string_view> texts;
  for (size_t g = 1; g < groups.size(); ++g) texts.emplace_back(groups[g].data(), groups[g].size());
  return texts;
}

size_t position_of_number(const Glob& glob, const std::string& name) {
  const std::vector<GlobToken> wildcards = glob.wildcards();
  const auto found = std::find_if(wildcards.begin(), wildcards.end(), [&](const GlobToken& token) {
    return token.kind == GlobToken::Kind::kNumber && token.text == name;
  });
  return static_cast<size_t>(found - wildcards.begin());
}

}  // namespace shardtool::mapping
