#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/mapping/document/name_form.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/match/pattern_set.h"

namespace shardtool::mapping {

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
  /// NameMatcher::match. Throws kShapeMismatch if a regex captures something else.
  std::map<std::string, Capture> captures(RuleMatch match, std::string_view name);

 private:
  /// A capture of a rule, and its index among the numbers of a name.
  struct CapturedNumber {
    std::string capture;
    size_t number = 0;
  };
  /// nullopt: captures differ between names of this form, so each name is matched by itself.
  using CapturedNumbers = std::optional<std::vector<CapturedNumber>>;

  bool holds(RuleMatch match, std::string_view name);
  bool holds_in(const PlacedRule& placed, const LayerSet& set, i64 layer);
  CapturedNumbers captured_numbers(RuleMatch match, const NumberedName& name);
  std::map<std::string, Capture> captures_in(RuleMatch match, std::string_view name);

  const ModelConfig* config_;
  std::vector<PlacedRule> rules_;
  std::vector<size_t> rule_of_pattern_;
  const PatternSet& patterns_;
  NameMatcher names_;
  std::map<size_t, ByForm<CapturedNumbers>> captured_;     ///< by pattern and form of the name
  std::map<std::pair<const LayerSet*, i64>, bool> holds_;  ///< by layer set and layer
  std::vector<bool> used_;
};

}  // namespace shardtool::mapping
