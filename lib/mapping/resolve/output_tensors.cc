#include "lib/mapping/resolve/output_tensors.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/name_map.h"
#include "lib/base/text.h"
#include "lib/mapping/presets.h"

namespace shardtool::mapping {
namespace {

using re2::RE2;
using Join = Content::Kind;

/// Matches names and returns the texts of the wildcards.
class Matcher {
 public:
  explicit Matcher(const Glob& glob) : pattern_(glob.regex_of_groups(), RE2::Quiet) {}

  std::optional<std::vector<std::string>> match(std::string_view name) const {
    std::vector<re2::StringPiece> groups(static_cast<size_t>(pattern_.NumberOfCapturingGroups()) +
                                         1);
    const bool matches =
        pattern_.Match(re2::StringPiece(name.data(), name.size()), 0, name.size(), RE2::ANCHOR_BOTH,
                       groups.data(), static_cast<int>(groups.size()));
    if (!matches) return std::nullopt;
    std::vector<std::string> texts;
    for (size_t g = 1; g < groups.size(); ++g)
      texts.emplace_back(groups[g].data(), groups[g].size());
    return texts;
  }

 private:
  RE2 pattern_;
};

/// Position of a number among the wildcards.
size_t position_of(const Glob& glob, const std::string& number) {
  const std::vector<GlobToken> wildcards = glob.wildcards();
  const auto found = std::find_if(wildcards.begin(), wildcards.end(), [&](const GlobToken& token) {
    return token.kind == GlobToken::Kind::kNumber && token.text == number;
  });
  return static_cast<size_t>(found - wildcards.begin());
}

class Arranger {
 public:
  Arranger(std::span<const TensorSpec> tensors, std::vector<bool> is_stored)
      : tensors_(tensors), is_free_(std::move(is_stored)) {
    for (size_t t = 0; t < tensors.size(); ++t) {
      if (is_free_[t]) by_name_.emplace(tensors[t].name, t);
    }
  }

  void apply(const StoreRule& rule) {
    const Matcher first(rule.of.front());
    std::map<std::string, std::map<i64, Content>> stacks;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (!is_free_[t] && !(rule.constant && by_name_.contains(tensors_[t].name))) continue;
      auto texts = first.match(tensors_[t].name);
      if (!texts) continue;
      if (rule.constant) {
        result_.push_back({rule.name.fill(*texts), {Join::kTensor, t, {}}, rule.constant});
        continue;
      }
      Content content = joined(rule, t, *texts);
      if (rule.stack.empty()) {
        result_.push_back({rule.name.fill(*texts), std::move(content), std::nullopt});
        continue;
      }
      const auto number =
          texts->begin() + static_cast<i64>(position_of(rule.of.front(), rule.stack));
      const i64 index = std::stoll(*number);
      texts->erase(number);
      stacks[rule.name.fill(*texts)].emplace(index, std::move(content));
    }
    for (auto& [name, parts] : stacks) {
      Content stack{Join::kStack, 0, {}};
      for (auto& [index, part] : parts) stack.parts.push_back(std::move(part));
      result_.push_back({name, std::move(stack), std::nullopt});
    }
    check_none_left(rule);
  }

  std::vector<OutputTensor> finish() && {
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (is_free_[t]) result_.push_back({tensors_[t].name, {Join::kTensor, t, {}}, std::nullopt});
    }
    std::sort(result_.begin(), result_.end(),
              [](const OutputTensor& a, const OutputTensor& b) { return a.name < b.name; });
    const auto twice = std::adjacent_find(
        result_.begin(), result_.end(),
        [](const OutputTensor& a, const OutputTensor& b) { return a.name == b.name; });
    if (twice == result_.end()) return std::move(result_);
    throw Error(ErrorCode::kStrategy, "two tensors of the output would have one name")
        .tensor(quote_for_message(twice->name))
        .help("change a rule of \"store\", or drop one of the tensors");
  }

 private:
  /// Takes the parts of one output tensor, or of one index of its stack.
  Content joined(const StoreRule& rule, size_t first, const std::vector<std::string>& texts) {
    is_free_[first] = false;
    Content content{Join::kTensor, first, {}};
    if (rule.of.size() == 1) return content;
    Content concat{Join::kConcat, 0, {std::move(content)}};
    for (size_t p = 1; p < rule.of.size(); ++p) {
      const std::string name = rule.of[p].fill(texts);
      const auto part = by_name_.find(name);
      if (part == by_name_.end() || !is_free_[part->second]) {
        throw Error(ErrorCode::kStrategy,
                    fmt::format("'{}' is to be stored together with '{}', which is not there",
                                quote_for_message(tensors_[first].name), quote_for_message(name)))
            .at(rule.place);
      }
      check_joinable(rule, tensors_[first], tensors_[part->second]);
      is_free_[part->second] = false;
      concat.parts.push_back({Join::kTensor, part->second, {}});
    }
    return concat;
  }

  static void check_joinable(const StoreRule& rule, const TensorSpec& first,
                             const TensorSpec& part) {
    const auto inner = [](const Shape& shape) {
      return Shape(shape.begin() + (shape.empty() ? 0 : 1), shape.end());
    };
    if (first.dtype == part.dtype && first.shape.size() == part.shape.size() &&
        inner(first.shape) == inner(part.shape)) {
      return;
    }
    const auto describe = [](const TensorSpec& spec) {
      return fmt::format("{} {}", shardtool::to_string(spec.dtype),
                         shardtool::to_string(spec.shape));
    };
    throw Error(ErrorCode::kStrategy,
                fmt::format("'{}' cannot be concatenated with '{}' along axis 0",
                            quote_for_message(part.name), quote_for_message(first.name)))
        .at(rule.place)
        .note("found", describe(part))
        .note("expected", "the dtype and the inner axes of " + describe(first));
  }

  /// Throws if a tensor matches a later glob of "of", and the first part is missing.
  void check_none_left(const StoreRule& rule) const {
    for (size_t p = 1; p < rule.of.size(); ++p) {
      const Matcher matcher(rule.of[p]);
      for (size_t t = 0; t < tensors_.size(); ++t) {
        if (!is_free_[t]) continue;
        const auto texts = matcher.match(tensors_[t].name);
        if (!texts) continue;
        throw Error(ErrorCode::kStrategy,
                    fmt::format("'{}' is to be stored together with '{}', which is not there",
                                quote_for_message(tensors_[t].name),
                                quote_for_message(rule.of.front().fill(*texts))))
            .at(rule.place);
      }
    }
  }

  std::span<const TensorSpec> tensors_;
  std::vector<bool> is_free_;  ///< stored, and not taken by a rule yet
  NameMap<size_t> by_name_;
  std::vector<OutputTensor> result_;
};

}  // namespace

std::optional<std::vector<OutputTensor>> output_tensors(const Mapping& mapping,
                                                        std::span<const TensorSpec> tensors,
                                                        const std::vector<bool>& is_stored,
                                                        const ModelConfig* config) {
  const auto documents = mapping.documents();
  const bool has_rules = std::any_of(documents.begin(), documents.end(),
                                     [](const Document& d) { return !d.store.empty(); });
  if (!has_rules) return std::nullopt;
  Arranger arranger(tensors, is_stored);
  for (const Document& document : documents) {
    for (const StoreRule& rule : document.store) {
      const bool applies = std::all_of(rule.config.begin(), rule.config.end(),
                                       [&](const ConfigCondition& condition) {
                                         return config != nullptr && holds(condition, *config);
                                       });
      if (applies) arranger.apply(rule);
    }
  }
  return std::move(arranger).finish();
}

}  // namespace shardtool::mapping
