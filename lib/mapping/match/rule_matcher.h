#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/mapping/document/glob.h"
#include "lib/mapping/document/name_form.h"
#include "lib/mapping/mapping.h"

namespace re2 {
class RE2;
}

namespace shardtool::mapping {

/// A set of patterns that are matched against whole names in one pass (RE2::Set).
class PatternSet {
 public:
  PatternSet();
  ~PatternSet();
  PatternSet(PatternSet&&) noexcept;
  PatternSet& operator=(PatternSet&&) noexcept;

  /// Adds a pattern in RE2 syntax. Indices count from 0 in the order of calls. Throws kLimit above
  /// 20,000 patterns.
  void add(const std::string& regex, NumberUse numbers);
  void add(const Glob& glob);
  /// Must be called once, after the last add. Throws kLimit if the patterns need too much memory.
  void compile();
  /// Returns the indices of the matching patterns, ascending. If no pattern depends on numbers, the
  /// result is cached by the name's form. Throws kLimit if matching takes too much memory.
  const std::vector<int>& match(std::string_view name);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A rule with its place. Points into the mapping, which must outlive it.
struct PlacedRule {
  const Document* document = nullptr;
  const Rule* rule = nullptr;
  size_t layer = 0;   ///< of the layers with a match, the lowest wins
  std::string label;  ///< "q", "rules/3", "preset:llama#q"
};

/// A rule that matched a name, and the index of the pattern among all patterns.
struct RuleMatch {
  size_t rule = 0;  ///< index into RuleMatcher::rules
  size_t pattern = 0;
};

/// An integer captured from a name, and the position of its digits.
struct Capture {
  i64 value = 0;
  size_t begin = 0;
  size_t size = 0;
};

/// All rules of a mapping in layers: first the overrides of each document, nearest first, then the
/// rules of each document, nearest first.
class RuleMatcher {
 public:
  /// `config` decides in which layers a rule with "where" holds; may be null. Both must outlive
  /// this.
  RuleMatcher(const Mapping& mapping, const ModelConfig* config);
  ~RuleMatcher();

  std::span<const PlacedRule> rules() const { return rules_; }
  /// Returns the rule for a name, from the first layer with a match. A rule with "where" matches
  /// only in those layers. Marks every matching rule as used. Throws kAmbiguousRule if two rules of
  /// that layer match, and kConfig or kUnsupported if config.json does not determine the layers of
  /// a rule.
  std::optional<RuleMatch> find(std::string_view name);
  /// Returns true if the rule matched a name given to `find`, in any layer.
  bool is_used(size_t rule) const { return used_[rule]; }
  /// Returns true if a pattern of the rule matches the name, in whichever layers the rule holds.
  bool matches(size_t rule, std::string_view name);
  /// Returns the integers that "index" and "where" of the rule name, by capture. Caches like
  /// PatternSet::match. Throws kShapeMismatch if a regex captures something else.
  std::map<std::string, Capture> captures(RuleMatch match, std::string_view name);

 private:
  void add(const Document& document, const std::vector<Rule>& rules, size_t layer);
  /// A capture of a rule, and its index among the numbers of a name.
  struct CapturedNumber {
    std::string capture;
    size_t number = 0;
  };
  /// nullopt: captures differ between names of this form, so each name is matched by itself.
  using CapturedNumbers = std::optional<std::vector<CapturedNumber>>;

  const re2::RE2& compiled(size_t pattern);
  bool holds(RuleMatch match, std::string_view name);
  bool holds_in(const PlacedRule& placed, const LayerSet& set, i64 layer);
  CapturedNumbers captured_numbers(RuleMatch match, const NumberedName& name);
  std::map<std::string, Capture> captures_in(RuleMatch match, std::string_view name);

  const ModelConfig* config_;
  std::vector<PlacedRule> rules_;
  std::vector<size_t> rule_of_pattern_;
  std::vector<const Pattern*> patterns_;
  /// By pattern; null for patterns without captures.
  std::vector<std::unique_ptr<re2::RE2>> compiled_;
  std::map<size_t, ByForm<CapturedNumbers>> captured_;     ///< by pattern and form of the name
  std::map<std::pair<const LayerSet*, i64>, bool> holds_;  ///< by layer set and layer
  std::vector<bool> used_;
  PatternSet set_;
};

}  // namespace shardtool::mapping
