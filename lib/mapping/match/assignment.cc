#include "lib/mapping/match/assignment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "lib/base/text.h"
#include "lib/mapping/document/form_pattern.h"
#include "lib/mapping/document/glob_matcher.h"
#include "lib/mapping/document/name_form.h"
#include "lib/mapping/match/compiled_patterns.h"
#include "lib/mapping/match/nearest_names.h"
#include "lib/mapping/match/unmatched_names.h"
#include "lib/mapping/presets.h"

namespace shardtool::mapping {
namespace {

UnknownPolicy unknown_policy(const Mapping& mapping) {
  for (const Document& document : mapping.documents()) {
    if (document.unknown) return *document.unknown;
  }
  return UnknownPolicy::kError;
}

bool extends_preset(const Mapping& mapping, const std::string& name) {
  const auto documents = mapping.documents();
  return std::any_of(documents.begin(), documents.end(),
                     [&](const Document& document) { return document.name == "preset:" + name; });
}

/// Returns the general forms of unmatched names, with the number of names of each.
std::map<std::string, i64> count_forms(std::span<const TensorSpec> tensors,
                                       const std::vector<Assignment>& assignments) {
  std::map<std::string, i64> forms;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (assignments[i].kind == Assignment::Kind::kUnknown) ++forms[name_form(tensors[i].name)];
  }
  return forms;
}

/// Returns the forms of all names, sorted.
std::vector<std::string> forms_of(std::span<const TensorSpec> tensors) {
  std::vector<std::string> forms;
  for (const TensorSpec& tensor : tensors) forms.push_back(name_form(tensor.name));
  std::sort(forms.begin(), forms.end());
  forms.erase(std::unique(forms.begin(), forms.end()), forms.end());
  return forms;
}

/// Advises on a pattern that matches nothing: the name that it nearly is, or for a text that is a
/// name and that a glob reads otherwise, how to write that name. Empty without advice.
std::string pattern_advice(const std::string& pattern, const std::vector<std::string>& forms) {
  if (std::ranges::binary_search(forms, pattern))
    return fmt::format("the name itself is written {{{}, ...}}",
                       quote_for_message(form_pattern(pattern)));
  return did_you_mean(pattern_form(pattern), forms);
}

/// Adds a note for every own rule that matches nothing, with the names that are most like it.
void explain_unused(Error& e, const RuleMatcher& rules, std::span<const TensorSpec> tensors) {
  const std::vector<std::string> forms = forms_of(tensors);
  for (size_t r = 0; r < rules.rules().size(); ++r) {
    const PlacedRule& placed = rules.rules()[r];
    if (rules.is_used(r) || placed.document->is_preset) continue;
    const std::string& pattern = placed.rule->patterns.front().text;
    const auto nearest = nearest_names(pattern, forms);
    const std::string hint = pattern_advice(pattern, forms);
    if (!hint.empty())
      e.help(
          fmt::format("rule '{}' says \"{}\": {}", placed.label, quote_for_message(pattern), hint));
    e.note("matches nothing",
           fmt::format("rule '{}', \"{}\"{}{}", placed.label, quote_for_message(pattern),
                       nearest.empty() ? "" : "; the nearest names are ",
                       quote_for_message(fmt::format("{}", fmt::join(nearest, ", ")))));
  }
}

/// Adds the name of the missing leader to the error, if the tensor is a companion.
void explain_missing_leader(Error& e, const TensorSpec& tensor, const TensorIndex& by_name,
                            Companions& companions) {
  const auto matches = companions.find(tensor);
  const auto missing =
      std::find_if(matches.begin(), matches.end(),
                   [&](const CompanionMatch& match) { return !by_name.contains(match.leader); });
  if (missing == matches.end()) return;
  e.note("follows", fmt::format("'{}' ({}), which is not in the checkpoint",
                                quote_for_message(missing->leader),
                                companions.all()[missing->companion].label));
  e.help("take the tensor that it follows from the same checkpoint, or leave both out");
}

/// Adds to the error why no family of quantised tensors decides the tensor.
void explain_missing_family(Error& e, const TensorSpec& tensor, Companions& companions) {
  if (!companions.find(tensor).empty()) return;
  const auto families = families_that_know(tensor);
  if (families.empty()) return;
  e.note("known to",
         fmt::format("the families of quantised tensors: {}", fmt::join(families, ", ")));
  e.help(
      "config.json calls for none of them: put the quantised model's own config.json beside the "
      "weights, with its \"quantization_config\"");
}

/// Returns true if such names usually mean that one tensor holds several matrices.
bool sounds_fused(const std::string& name) {
  constexpr std::array<std::string_view, 5> kWords = {"qkv", "query_key_value", "c_attn", "gate_up",
                                                      "fused"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

Error no_rule(const Mapping& mapping, std::span<const TensorSpec> tensors,
              const TensorIndex& by_name, const ModelConfig* config, const RuleMatcher& rules,
              Companions& companions, const std::vector<Assignment>& assignments) {
  constexpr size_t kForms = 5;
  const auto forms = count_forms(tensors, assignments);
  const auto first = std::find_if(assignments.begin(), assignments.end(), [](const Assignment& a) {
    return a.kind == Assignment::Kind::kUnknown;
  });
  const TensorSpec& tensor = tensors[static_cast<size_t>(first - assignments.begin())];
  const auto count = std::count_if(first, assignments.end(), [](const Assignment& a) {
    return a.kind == Assignment::Kind::kUnknown;
  });
  Error e(ErrorCode::kNoRule, fmt::format("{} {} no rule, the first is '{}'", count,
                                          count == 1 ? "tensor matches" : "tensors match",
                                          quote_for_message(tensor.name)));
  e.at({mapping.own().name, 0, 0, {}}).tensor(tensor.name);
  size_t shown = 0;
  for (const auto& [form, of_form] : forms) {
    if (shown++ < kForms)
      e.note("no rule", fmt::format("{} ({})", quote_for_message(form), of_form));
  }
  if (has_unmerged_adapter(tensors)) return e.help(std::string(kMergeAdapter));
  if (const auto prefix = unknown_prefix(mapping, tensors, config); !prefix.empty()) {
    return e.help(
        fmt::format("all names begin with '{0}.', which the mapping does not know: "
                    "SRC#{0}, the source with that ending, leaves it out",
                    quote_for_message(prefix)));
  }
  if (const auto advice = advice_on_wrapper(mapping, tensor.name, config); !advice.empty())
    return e.help(advice);
  explain_unused(e, rules, tensors);
  const auto preset = config == nullptr ? std::nullopt : detect_preset(*config, tensors);
  if (preset && !extends_preset(mapping, *preset)) {
    e.help(fmt::format(
        "this looks like a model that preset '{0}' knows: \"extends\": [\"preset:{0}\"]", *preset));
  }
  explain_missing_leader(e, tensor, by_name, companions);
  explain_missing_family(e, tensor, companions);
  if (sounds_fused(tensor.name)) {
    e.help(
        "the order inside a fused tensor is not guessed: sections side by side are \"dims\": "
        "[\"heads*head_dim + kv_heads*head_dim + kv_heads*head_dim\", null], parts of each head "
        "\"heads*3*head_dim\"");
  }
  e.help(
      fmt::format("add a rule, such as {{{}, \"strategy\": \"replicate\"}}, or say "
                  "\"unknown\": \"replicate\"",
                  quote_for_message(form_pattern(forms.begin()->first))));
  return e;
}

/// `dropped` is a tensor that the rule matches and "drop" leaves out; null: there is none.
/// `matches`: the patterns match tensors of other layers than the rule's.
Error unused_rule(const PlacedRule& placed, std::span<const TensorSpec> tensors,
                  const TensorSpec* dropped, bool matches) {
  const std::string& pattern = placed.rule->patterns.front().text;
  Error e(ErrorCode::kUnusedRule, fmt::format("rule '{}' matches no tensor", placed.label));
  e.at(placed.rule->place).note("pattern", quote_for_message(pattern));
  for (const auto& [capture, set] : placed.rule->where)
    e.note("where", fmt::format("<{}> is a layer of which {}", capture, to_string(set)));
  if (dropped != nullptr) {
    return e.note("dropped", dropped->name)
        .help("\"drop\" leaves out what this rule matches: delete the rule, or change \"drop\"");
  }
  if (matches) {
    return e.help("tensors have such names, but in none of these layers: correct \"where\"");
  }
  const std::vector<std::string> forms = forms_of(tensors);
  const auto nearest = nearest_names(pattern, forms);
  const std::string hint = pattern_advice(pattern, forms);
  if (!hint.empty()) e.help(hint);
  if (hint.empty() && !nearest.empty())
    e.note("nearest names", quote_for_message(fmt::format("{}", fmt::join(nearest, ", "))));
  return e.help("correct or delete the rule, or say \"unused_rule\": \"ignore\"");
}

/// Passes the error to `report`, or throws it if that is empty.
void raise(Error error, const ErrorSink& report) {
  if (!report) throw std::move(error);
  report(std::move(error));
}

/// Returns a dropped tensor that the rule matches, or null.
const TensorSpec* dropped_by_rule(RuleMatcher& rules, size_t rule,
                                  std::span<const TensorSpec> tensors,
                                  const std::vector<Assignment>& assigned) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool is_dropped = assigned[i].kind == Assignment::Kind::kDropped;
    if (is_dropped && rules.matches(rule, tensors[i].name)) return &tensors[i];
  }
  return nullptr;
}

void check_unused(RuleMatcher& rules, std::span<const TensorSpec> tensors,
                  const std::vector<Assignment>& assigned, std::vector<std::string>& warnings,
                  const ErrorSink& report) {
  for (size_t r = 0; r < rules.rules().size(); ++r) {
    const PlacedRule& placed = rules.rules()[r];
    if (rules.is_used(r) || placed.document->unused_rule == UnusedPolicy::kIgnore) continue;
    if (report || placed.document->unused_rule == UnusedPolicy::kError) {
      const bool matches = std::ranges::any_of(
          tensors, [&](const TensorSpec& tensor) { return rules.matches(r, tensor.name); });
      raise(unused_rule(placed, tensors, dropped_by_rule(rules, r, tensors, assigned), matches),
            report);
      continue;
    }
    warnings.push_back(
        fmt::format("{}: rule '{}' matches no tensor", line_of(placed.rule->place), placed.label));
  }
}

/// Marks rules as used if they match a missing tensor that is tied to a present one: such a rule is
/// not a typo.
void use_rules_of_absent_twins(const Mapping& mapping, const TensorIndex& by_name,
                               RuleMatcher& rules) {
  for (const Document& document : mapping.documents()) {
    for (const auto& group : document.tied) {
      const bool any = std::any_of(group.begin(), group.end(),
                                   [&](const std::string& name) { return by_name.contains(name); });
      for (const std::string& name : group) {
        if (any && !by_name.contains(name)) rules.find(name);
      }
    }
  }
}

/// Returns the entries of "drop" of all documents, nearest first.
std::vector<const DropRule*> drop_rules(const Mapping& mapping) {
  std::vector<const DropRule*> rules;
  for (const Document& document : mapping.documents()) {
    for (const DropRule& rule : document.drop) rules.push_back(&rule);
  }
  return rules;
}

GlobSet drop_globs(const std::vector<const DropRule*>& rules) {
  std::vector<const Glob*> globs;
  for (const DropRule* rule : rules) globs.push_back(&rule->match);
  return GlobSet(globs);
}

/// The tensors that "drop" leaves out.
class Dropped {
 public:
  Dropped(const Mapping& mapping, const ModelConfig* config)
      : config_(config),
        rules_(drop_rules(mapping)),
        globs_(mapping.patterns().dropped.of([&] { return drop_globs(rules_); })),
        names_(globs_.set) {}

  bool has(const std::string& name) {
    const std::vector<int>& matches = names_.match(name);
    return std::any_of(matches.begin(), matches.end(),
                       [&](int m) { return holds(static_cast<size_t>(m), name); });
  }

 private:
  bool holds(size_t index, const std::string& name) const {
    const DropRule& rule = *rules_[index];
    if (rule.where.empty()) return true;
    if (config_ == nullptr) {
      throw Error(ErrorCode::kConfig, "\"drop\" depends on config.json, and there is none")
          .tensor(quote_for_message(name))
          .help("put the model's config.json beside the weights, or give it with --model-config");
    }
    const std::vector<std::string> texts = globs_.each[index].match(name).value();
    return std::all_of(rule.where.begin(), rule.where.end(), [&](const auto& where) {
      const std::string& number = texts[position_of_number(rule.match, where.first)];
      return contains(where.second, *config_, std::stoll(number));
    });
  }

  const ModelConfig* config_;
  std::vector<const DropRule*> rules_;
  const GlobSet& globs_;
  NameMatcher names_;
};

class Assigner {
 public:
  Assigner(const Mapping& mapping, std::span<const TensorSpec> tensors, const TensorIndex& by_name,
           const ModelConfig* config, RuleMatcher& rules, Companions& companions,
           const ErrorSink& report)
      : tensors_(tensors),
        by_name_(by_name),
        rules_(rules),
        companions_(companions),
        report_(report),
        dropped_(mapping, config),
        assigned_(tensors.size()) {}

  std::vector<Assignment> run() && {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (dropped_.has(tensors_[i].name)) assigned_[i].kind = Assignment::Kind::kDropped;
    }
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (assigned_[i].kind != Assignment::Kind::kDropped && !follow(i)) apply_rule(i);
    }
    for (const Assignment& a : assigned_) check_leader(a);
    return std::move(assigned_);
  }

 private:
  bool follow(size_t i) {
    for (const CompanionMatch& match : companions_.find(tensors_[i])) {
      const auto leader = by_name_.find(match.leader);
      if (leader == by_name_.end() || leader->second == i) continue;
      if (assigned_[leader->second].kind == Assignment::Kind::kDropped) continue;
      assigned_[i] = {Assignment::Kind::kCompanion, {}, match.companion, leader->second};
      return true;
    }
    return false;
  }

  void apply_rule(size_t i) {
    try {
      if (const auto match = rules_.find(tensors_[i].name))
        assigned_[i] = {Assignment::Kind::kRule, *match, 0, 0};
    } catch (const Error& ambiguous) {
      raise(ambiguous, report_);
      assigned_[i].kind = Assignment::Kind::kDropped;
    }
  }

  void check_leader(const Assignment& a) const {
    if (a.kind != Assignment::Kind::kCompanion ||
        assigned_[a.leader].kind != Assignment::Kind::kCompanion)
      return;
    throw Error(ErrorCode::kMappingSchema,
                fmt::format("the companion of '{}' follows a tensor that is a companion itself",
                            quote_for_message(tensors_[a.leader].name)))
        .at(companions_.all()[a.companion].spec->place)
        .tensor(tensors_[a.leader].name)
        .help("let both follow the tensor that a rule cuts");
  }

  std::span<const TensorSpec> tensors_;
  const TensorIndex& by_name_;
  RuleMatcher& rules_;
  Companions& companions_;
  const ErrorSink& report_;
  Dropped dropped_;
  std::vector<Assignment> assigned_;
};

}  // namespace

TensorIndex index_by_name(std::span<const TensorSpec> tensors) {
  TensorIndex by_name;
  by_name.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) by_name.insert_or_assign(tensors[i].name, i);
  return by_name;
}

std::vector<Assignment> assign(const Mapping& mapping, std::span<const TensorSpec> tensors,
                               const TensorIndex& by_name, const ModelConfig* config,
                               RuleMatcher& rules, Companions& companions,
                               std::vector<std::string>& warnings, const ErrorSink& report) {
  auto assigned = Assigner(mapping, tensors, by_name, config, rules, companions, report).run();
  use_rules_of_absent_twins(mapping, by_name, rules);
  const UnknownPolicy policy = unknown_policy(mapping);
  const auto unknown = std::count_if(assigned.begin(), assigned.end(), [](const Assignment& a) {
    return a.kind == Assignment::Kind::kUnknown;
  });
  if (unknown > 0 && policy == UnknownPolicy::kError)
    raise(no_rule(mapping, tensors, by_name, config, rules, companions, assigned), report);
  if (unknown > 0 && policy == UnknownPolicy::kWarn) {
    for (const auto& [form, count] : count_forms(tensors, assigned)) {
      warnings.push_back(
          fmt::format("no rule matches {} ({}); replicated", quote_for_message(form), count));
    }
  }
  check_unused(rules, tensors, assigned, warnings, report);
  return assigned;
}

}  // namespace shardtool::mapping
