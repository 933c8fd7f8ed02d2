#include "lib/mapping/match/rule_matcher.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "lib/base/text.h"
#include "lib/mapping/match/compiled_patterns.h"

namespace shardtool::mapping {
namespace {

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

std::vector<PlacedRule> placed_rules(const Mapping& mapping) {
  const auto documents = mapping.documents();
  std::vector<PlacedRule> placed;
  const auto add = [&](const Document& document, const std::vector<Rule>& rules, size_t layer) {
    for (const Rule& rule : rules)
      placed.push_back({&document, &rule, layer, mapping.qualified(document, rule.label)});
  };
  for (size_t d = 0; d < documents.size(); ++d) add(documents[d], documents[d].overrides, d);
  for (size_t d = 0; d < documents.size(); ++d)
    add(documents[d], documents[d].rules, documents.size() + d);
  return placed;
}

/// Returns the index of the rule of every pattern.
std::vector<size_t> rules_of_patterns(const std::vector<PlacedRule>& placed) {
  std::vector<size_t> rules;
  for (size_t r = 0; r < placed.size(); ++r)
    rules.insert(rules.end(), placed[r].rule->patterns.size(), r);
  return rules;
}

PatternSet rule_patterns(const std::vector<PlacedRule>& placed) {
  std::vector<Pattern> patterns;
  for (const PlacedRule& rule : placed) {
    const std::vector<Pattern>& own = rule.rule->patterns;
    patterns.insert(patterns.end(), own.begin(), own.end());
  }
  return PatternSet(std::move(patterns));
}

}  // namespace

RuleMatcher::RuleMatcher(const Mapping& mapping, const ModelConfig* config)
    : config_(config),
      rules_(placed_rules(mapping)),
      rule_of_pattern_(rules_of_patterns(rules_)),
      patterns_(mapping.patterns().rules.of([&] { return rule_patterns(rules_); })),
      names_(patterns_),
      used_(rules_.size()) {}

std::optional<RuleMatch> RuleMatcher::find(std::string_view name) {
  std::optional<RuleMatch> winner;
  for (const int matched : names_.match(name)) {
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
  const std::vector<int>& patterns = names_.match(name);
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

RuleMatcher::CapturedNumbers RuleMatcher::captured_numbers(RuleMatch match,
                                                           const NumberedName& name) {
  if (!patterns_.takes_any_number(match.pattern)) return std::nullopt;
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
  const RE2& pattern = patterns_.at(match.pattern);
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
