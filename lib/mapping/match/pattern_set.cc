#include "lib/mapping/match/pattern_set.h"

#include <fmt/format.h>
#include <re2/re2.h>
#include <re2/set.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "lib/base/error.h"

namespace shardtool::mapping {
namespace {

constexpr size_t kMaxPatterns = 20'000;
constexpr i64 kMatcherMemory = 64 << 20;

RE2::Options matcher_options() {
  RE2::Options options(RE2::Quiet);
  options.set_max_mem(kMatcherMemory);
  return options;
}

Error too_many(size_t patterns) {
  return Error(ErrorCode::kLimit,
               fmt::format("{} patterns are too many or too large to match at once", patterns))
      .help(
          "write fewer, more general patterns: \"model.layers.<layer>.**\" instead of one per "
          "layer");
}

}  // namespace

struct PatternSet::Impl {
  explicit Impl(std::vector<Pattern> of) : patterns(std::move(of)), alone(patterns.size()) {
    if (patterns.size() > kMaxPatterns) throw too_many(patterns.size());
    for (const Pattern& pattern : patterns) {
      std::string why;
      if (set.Add(pattern.regex, &why) < 0)
        throw Error(ErrorCode::kLimit, "a pattern cannot be compiled: " + why);
    }
    if (!set.Compile()) throw too_many(patterns.size());
  }

  std::vector<Pattern> patterns;
  RE2::Set set{matcher_options(), RE2::ANCHOR_BOTH};
  std::mutex mutex;                         ///< of `alone`
  std::vector<std::unique_ptr<RE2>> alone;  ///< by pattern; null until they are asked for
};

PatternSet::PatternSet(std::vector<Pattern> patterns)
    : impl_(std::make_unique<Impl>(std::move(patterns))) {}
PatternSet::~PatternSet() = default;
PatternSet::PatternSet(PatternSet&&) noexcept = default;

bool PatternSet::takes_any_number(size_t pattern) const {
  return impl_->patterns[pattern].numbers == NumberUse::kAnyAlike;
}

bool PatternSet::takes_any_number() const {
  return std::ranges::none_of(
      impl_->patterns, [](const Pattern& pattern) { return pattern.numbers == NumberUse::kRead; });
}

std::vector<int> PatternSet::match(std::string_view name) const {
  std::vector<int> found;
  RE2::Set::ErrorInfo info{};
  impl_->set.Match(re2::StringPiece(name.data(), name.size()), &found, &info);
  if (info.kind == RE2::Set::kOutOfMemory) throw too_many(impl_->patterns.size());
  std::sort(found.begin(), found.end());
  return found;
}

const re2::RE2& PatternSet::at(size_t pattern) const {
  const std::lock_guard guard(impl_->mutex);
  std::unique_ptr<RE2>& compiled = impl_->alone[pattern];
  if (!compiled) compiled = std::make_unique<RE2>(impl_->patterns[pattern].regex, RE2::Quiet);
  return *compiled;
}

const std::vector<int>& NameMatcher::match(std::string_view name) {
  if (!is_by_form_) return last_ = set_.match(name);
  numbered_.assign(name);
  return by_form_.of(numbered_.form(), [&] { return set_.match(name); });
}

}  // namespace shardtool::mapping
