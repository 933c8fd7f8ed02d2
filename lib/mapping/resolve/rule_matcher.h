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

/// Many patterns of whole names, looked for at once (RE2::Set). A name costs one pass over it.
class PatternSet {
 public:
  PatternSet();
  ~PatternSet();
  PatternSet(PatternSet&&) noexcept;
  PatternSet& operator=(PatternSet&&) noexcept;

  /// Adds a pattern in RE2 syntax; the n-th one has index n. Throws kLimit above 20,000 patterns.
  void add(const std::string& regex, NumberUse numbers);
  void add(const Glob& glob);
  /// To be called once, after the last add. Throws kLimit when they need too much memory.
  void compile();
  /// The indices of the patterns that match, ascending; looked for once per form of names, where no
  /// pattern reads their numbers. Throws kLimit when that takes too much memory.
  const std::vector<int>& match(std::string_view name);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A rule and where it stands. Points into the mapping, which must outlive it.
struct PlacedRule {
  const Document* document = nullptr;
  const Rule* rule = nullptr;
  size_t layer = 0;   ///< the lowest one that matches wins
  std::string label;  ///< "q", "rules/3", "preset:llama#q"
};

/// What matched a name: the rule, and which of all patterns.
struct RuleMatch {
  size_t rule = 0;  ///< index into RuleMatcher::rules
  size_t pattern = 0;
};

/// An integer captured from a name, and where its digits stand.
struct Capture {
  i64 value = 0;
  size_t begin = 0;
  size_t size = 0;
};

/// All rules of a mapping in layers: the overrides of every document, nearest first, then the rules
/// of every document, nearest first.
class RuleMatcher {
 public:
  /// `config` is what says in which layers a rule with "where" holds, null: nothing says it. Both
  /// must outlive it.
  RuleMatcher(const Mapping& mapping, const ModelConfig* config);
  ~RuleMatcher();

  std::span<const PlacedRule> rules() const { return rules_; }
  /// The rule for a name, of the first layer with a match; a rule matches where its "where" holds,
  /// too. Also marks all rules that match as used. Throws kAmbiguousRule when two rules of that
  /// layer match, kConfig and kUnsupported where config.json does not say whether one holds.
  std::optional<RuleMatch> find(std::string_view name);
  /// Whether a name given to `find` matched the rule, in whatever layer.
  bool is_used(size_t rule) const { return used_[rule]; }
  /// The integers that the rule's "index" and "where" name, by capture name; looked for like
  /// matches. Throws kShapeMismatch for a regex that captures something else.
  std::map<std::string, Capture> captures(RuleMatch match, std::string_view name);

 private:
  void add(const Document& document, const std::vector<Rule>& rules, size_t layer);
  /// A capture of a rule, and which number of a name it is.
  struct CapturedNumber {
    std::string capture;
    size_t number = 0;
  };
  /// Nothing for names that have to be looked at one by one.
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
  std::vector<std::unique_ptr<re2::RE2>> compiled_;        ///< by pattern, those that capture
  std::map<size_t, ByForm<CapturedNumbers>> captured_;     ///< by pattern
  std::map<std::pair<const LayerSet*, i64>, bool> holds_;  ///< as the config says
  std::vector<bool> used_;
  PatternSet set_;
};

}  // namespace shardtool::mapping
