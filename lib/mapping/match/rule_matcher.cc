#include "lib/mapping/match/rule_matcher.h"

#include <fmt/format.h>
#include <re2/re2.h>
#include <re2/set.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "lib/base/text.h"

namespace shardtool::mapping {
namespace {

constexpr int kMaxPatterns = 20'000;
constexpr i64 kMatcherMemory = 64 << 20;

RE2::Options matcher_options() {
  RE2::Options options(RE2::Quiet);
  options.set_max_mem(kMatcherMemory);
  return options;
}

Error too_many(int patterns) {
  return Error(ErrorCode::kLimit,
               fmt::format("{} patterns are too many or too large to match at once", patterns))
      .help(
          "write fewer, more general patterns: \"model.layers.<layer>.**\" instead of one per "
          "layer");
}

Error ambiguous(std::string_view name, const PlacedRule& a, const PlacedRule& b) {
  Error e(ErrorCode::kAmbiguousRule, fmt::format("the rules '{}' and '{}' both match '{}'", a.label,
                                                 b.label, quote_for_message(name)));
  e.at(b.rule->place)
      .tensor(name)
      .note(a.label, describe(a.rule->place))
      .note(b.label, describe(b.rule->place));
  if (a.rule->place.pointer.starts_with("/overrides"))
    return std::move(e.help("narrow one of the two patterns"));
  return std::move(
      e.help("narrow one of the two patterns, or move the rule that shall win to \"overrides\""));
}

/// The captures whose numbers a rule uses.
std::set<std::string> captures_of(const Rule& rule) {
  std::set<std::string> names;
  for (const auto& [capture, axis] : rule.index) names.insert(capture);
  for (const auto& [capture, set] : rule.where) names.insert(capture);
  return names;
}

Error no_config(const PlacedRule& placed) {
  return Error(ErrorCode::kConfig,
               fmt::format("rule '{}' holds in some layers only, and there is no config.json that "
                           "defines them",
                           placed.label))
      .help("put config.json beside the weights");
}

}  // namespace

struct PatternSet::Impl {
  RE2::Set set{matcher_options(), RE2::ANCHOR_BOTH};
  int size = 0;
  NumberUse numbers = NumberUse::kAnyAlike;  ///< kRead if any pattern is
  ByForm<std::vector<int>> by_form;
  std::vector<int> last;  ///< result for names whose results are not cached
  NumberedName numbered;  ///< of the current name

  std::vector<int> match(std::string_view name) const {
    std::vector<int> found;
    RE2::Set::ErrorInfo info{};
    set.Match(re2::StringPiece(name.data(), name.size()), &found, &info);
    if (info.kind == RE2::Set::kOutOfMemory) throw too_many(size);
    std::sort(found.begin(), found.end());
    return found;
  }
};

PatternSet::PatternSet() : impl_(std::make_unique<Impl>()) {}
PatternSet::~PatternSet() = default;
PatternSet::PatternSet(PatternSet&&) noexcept = default;
PatternSet& PatternSet::operator=(PatternSet&&) noexcept = default;

void PatternSet::add(const Glob& glob) {
  add(glob.regex(), glob.takes_any_number() ? NumberUse::kAnyAlike : NumberUse::kRead);
}

void PatternSet::add(const std::string& regex, NumberUse numbers) {
  if (numbers == NumberUse::kRead) impl_->numbers = numbers;
  if (++impl_->size > kMaxPatterns) throw too_many(impl_->size);
  std::string why;
  if (impl_->set.Add(regex, &why) < 0)
    throw Error(ErrorCode::kLimit, "a pattern cannot be compiled: " + why);
}

void PatternSet::compile() {
  if (!impl_->set.Compile()) throw too_many(impl_->size);
}

const std::vector<int>& PatternSet::match(std::string_view name) {
  if (impl_->numbers == NumberUse::kRead) return impl_->last = impl_->match(name);
  impl_->numbered.assign(name);
  return impl_->by_form.of(impl_->numbered.form(), [&] { return impl_->match(name); });
}

RuleMatcher::RuleMatcher(const Mapping& mapping, const ModelConfig* config) : config_(config) {
  const auto documents = mapping.documents();
  for (size_t d = 0; d < documents.size(); ++d) add(documents[d], documents[d].overrides, d);
  for (size_t d = 0; d < documents.size(); ++d)
    add(documents[d], documents[d].rules, documents.size() + d);
  for (PlacedRule& placed : rules_)
    placed.label = mapping.qualified(*placed.document, placed.rule->label);
  set_.compile();
  compiled_.resize(patterns_.size());
  used_.resize(rules_.size());
}

RuleMatcher::~RuleMatcher() = default;

void RuleMatcher::add(const Document& document, const std::vector<Rule>& rules, size_t layer) {
  for (const Rule& rule : rules) {
    for (const Pattern& pattern : rule.patterns) {
      set_.add(pattern.regex, pattern.numbers);
      patterns_.push_back(&pattern);
      rule_of_pattern_.push_back(rules_.size());
    }
    rules_.push_back({&document, &rule, layer, {}});
  }
}

std::optional<RuleMatch> RuleMatcher::find(std::string_view name) {
  std::optional<RuleMatch> winner;
  for (const int matched : set_.match(name)) {
    const size_t pattern = static_cast<size_t>(matched);
    const size_t rule = rule_of_pattern_[pattern];
    const bool is_beaten = winner && rules_[rule].layer != rules_[winner->rule].layer;
    if (!is_beaten && !holds({rule, pattern}, name)) continue;
    used_[rule] = true;
    if (!winner) winner = {rule, pattern};
    if (rule != winner->rule && !is_beaten)
      throw ambiguous(name, rules_[winner->rule], rules_[rule]);
  }
  return winner;
}

bool RuleMatcher::matches(size_t rule, std::string_view name) {
  const std::vector<int>& patterns = set_.match(name);
  return std::any_of(patterns.begin(), patterns.end(), [&](int pattern) {
    return rule_of_pattern_[static_cast<size_t>(pattern)] == rule;
  });
}

bool RuleMatcher::holds(RuleMatch match, std::string_view name) {
  const PlacedRule& placed = rules_[match.rule];
  if (placed.rule->where.empty()) return true;
  const auto numbers = captures(match, name);
  return std::all_of(placed.rule->where.begin(), placed.rule->where.end(), [&](const auto& where) {
    return holds_in(placed, where.second, numbers.at(where.first).value);
  });
}

bool RuleMatcher::holds_in(const PlacedRule& placed, const LayerSet& set, i64 layer) {
  const auto [known, is_new] = holds_.try_emplace({&set, layer}, false);
  if (!is_new) return known->second;
  try {
    if (config_ == nullptr) throw no_config(placed);
    return known->second = contains(set, *config_, layer);
  } catch (Error& e) {
    holds_.erase(known);
    e.note("rule", fmt::format("'{}' holds where {}", placed.label, to_string(set)));
    throw e.at(placed.rule->place);
  }
}

const re2::RE2& RuleMatcher::compiled(size_t pattern) {
  if (!compiled_[pattern])
    compiled_[pattern] = std::make_unique<RE2>(patterns_[pattern]->regex, RE2::Quiet);
  return *compiled_[pattern];
}

RuleMatcher::CapturedNumbers RuleMatcher::captured_numbers(RuleMatch match,
                                                           const NumberedName& name) {
  if (patterns_[match.pattern]->numbers == NumberUse::kRead) return std::nullopt;
  std::vector<CapturedNumber> numbers;
  for (const auto& [capture, at] : captures_in(match, name.form())) {
    const auto number = name.number_at(at.begin, at.size);
    if (!number) return std::nullopt;
    numbers.push_back({capture, *number});
  }
  return numbers;
}

std::map<std::string, Capture> RuleMatcher::captures(RuleMatch match, std::string_view name) {
  const NumberedName numbered(name);
  const CapturedNumbers& known = captured_[match.pattern].of(
      numbered.form(), [&] { return captured_numbers(match, numbered); });
  if (!known) return captures_in(match, name);
  std::map<std::string, Capture> found;
  for (const auto& [capture, number] : *known) {
    const std::string_view digits = numbered.numbers()[number];
    i64 value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    found[capture] = {value, static_cast<size_t>(digits.data() - name.data()), digits.size()};
  }
  return found;
}

std::map<std::string, Capture> RuleMatcher::captures_in(RuleMatch match, std::string_view name) {
  std::map<std::string, Capture> found;
  const PlacedRule& placed = rules_[match.rule];
  const RE2& pattern = compiled(match.pattern);
  std::vector<re2::StringPiece> groups(static_cast<size_t>(pattern.NumberOfCapturingGroups()) + 1);
  pattern.Match(re2::StringPiece(name.data(), name.size()), 0, name.size(), RE2::ANCHOR_BOTH,
                groups.data(), static_cast<int>(groups.size()));
  for (const std::string& capture : captures_of(*placed.rule)) {
    const re2::StringPiece text =
        groups[static_cast<size_t>(pattern.NamedCapturingGroups().at(capture))];
    i64 value = 0;
    const auto [end, failure] = std::from_chars(text.begin(), text.end(), value);
    if (failure != std::errc{} || end != text.end() || value < 0) {
      throw Error(ErrorCode::kShapeMismatch,
                  fmt::format("the capture '{}' of rule '{}' is '{}', expected a number", capture,
                              placed.label, quote_for_message({text.data(), text.size()})))
          .at(placed.rule->place);
    }
    found[capture] = {value, static_cast<size_t>(text.data() - name.data()), text.size()};
  }
  return found;
}

}  // namespace shardtool::mapping
