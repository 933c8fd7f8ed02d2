#include "lib/mapping/resolve/output_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/name_map.h"
#include "lib/base/text.h"
#include "lib/mapping/document/glob_matcher.h"
#include "lib/mapping/presets.h"
#include "lib/mapping/resolve/stored_names.h"

namespace shardtool::mapping {
namespace {

using Join = Content::Kind;

/// Returns the module that the glob has in front of a name which it matches with it, "model." for
/// 'norm.weight' and "model.**"; empty if there is none.
std::string missing_module(const Glob& glob, const std::string& name) {
  const std::string& text = glob.text();
  const std::string module = text.substr(0, text.find('.') + 1);
  if (module.empty() || module.find_first_of("*{<") != module.npos) return "";
  return GlobMatcher(glob).match(module + name) ? module : "";
}

std::string missing_module(std::span<const Document> documents, const std::string& name) {
  std::vector<const Glob*> known;
  for (const Document& document : documents) {
    for (const StoreRule& rule : document.store) {
      for (const Glob& part : rule.of) known.push_back(&part);
    }
    if (!document.kept_names) continue;
    for (const Glob& kept : *document.kept_names) known.push_back(&kept);
  }
  for (const Glob* glob : known) {
    if (const std::string module = missing_module(*glob, name); !module.empty()) return module;
  }
  return "";
}

/// Returns how to give tensors the names that the files have, if a module in front of their names
/// does; else an empty text.
std::string advice_to_rename(std::span<const Document> documents,
                             const std::vector<std::string>& nameless) {
  const std::string module = missing_module(documents, nameless.front());
  if (module.empty()) return "";
  std::set<std::string> parts;
  for (const std::string& name : nameless) parts.insert(name.substr(0, name.find('.')));
  const std::string names =
      parts.size() == 1 ? *parts.begin() : fmt::format("{{{}}}", fmt::join(parts, ","));
  return fmt::format(
      "the files have '{0}{1}': in a mapping file that extends the model's preset, \"read\": "
      "[{{\"name\": \"{2}.**\", \"of\": \"{0}{2}.**\"}}] gives such names",
      module, quote_for_message(nameless.front()), quote_for_message(names));
}

class Arranger {
 public:
  Arranger(std::span<const TensorSpec> tensors, std::vector<bool> is_stored,
           const std::map<std::string, i64>& axis_sizes, const Resolution* layouts)
      : tensors_(tensors),
        is_free_(std::move(is_stored)),
        axis_sizes_(axis_sizes),
        layouts_(layouts) {
    for (size_t t = 0; t < tensors.size(); ++t) {
      if (is_free_[t]) by_name_.emplace(tensors[t].name, t);
    }
  }

  void apply(const StoreRule& rule) {
    const GlobMatcher first(rule.of.front());
    std::map<std::string, std::map<i64, Content>> stacks;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (!is_free_[t] && !(rule.constant && by_name_.contains(tensors_[t].name))) continue;
      auto texts = first.match(tensors_[t].name);
      if (!texts) continue;
      if (rule.constant) {
        result_.push_back({rule.name.fill(*texts), {Join::kTensor, t, {}}, rule.constant});
        continue;
      }
      if (rule.same) leave_out(rule, t, rule.same->fill(*texts));
      if (!rule.at.empty() && take_at(rule, t, rule.name.fill(*texts))) continue;
      Content content = joined(rule, t, *texts);
      if (!rule.interleave.empty()) content.interleaved = rows_of_unit(rule);
      if (rule.join > 0) content.joined = axes_to_join(rule, tensors_[t]);
      if (rule.stack.empty()) {
        result_.push_back(
            {rule.name.fill(*texts), std::move(content), std::nullopt, free_ranks(t)});
        continue;
      }
      const auto number =
          texts->begin() + static_cast<i64>(position_of_number(rule.of.front(), rule.stack));
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

  /// Throws kNoRule if a tensor would keep a name that the mapping does not keep.
  OutputTensors finish(const Mapping& mapping) && {
    check_kept(mapping);
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (!is_free_[t]) continue;
      result_.push_back({tensors_[t].name, {Join::kTensor, t, {}}, std::nullopt, free_ranks(t)});
    }
    std::sort(result_.begin(), result_.end(),
              [](const OutputTensor& a, const OutputTensor& b) { return a.name < b.name; });
    const auto twice = std::adjacent_find(
        result_.begin(), result_.end(),
        [](const OutputTensor& a, const OutputTensor& b) { return a.name == b.name; });
    if (twice == result_.end()) return {std::move(result_), std::move(left_out_)};
    throw Error(ErrorCode::kStrategy, "two tensors of the output would have one name")
        .tensor(quote_for_message(twice->name))
        .help("change a rule of \"store\", or drop one of the tensors");
  }

 private:
  /// Devices of a tensor that no rule with "at" has taken; empty: all.
  std::vector<i64> free_ranks(size_t tensor) const {
    const auto found = free_ranks_.find(tensor);
    return found == free_ranks_.end() ? std::vector<i64>{} : found->second;
  }

  /// Gives the name to the shards where the rule's numbers are, if other devices have the tensor,
  /// too. Returns false if the rule takes all that is left of the tensor.
  bool take_at(const StoreRule& rule, size_t tensor, std::string name) {
    const layout::Layout* const resolved = layouts_ == nullptr ? nullptr : find_layout(tensor);
    if (resolved == nullptr) return false;
    std::vector<i64> all = free_ranks(tensor);
    if (all.empty()) all = resolved->ranks();
    std::vector<i64> taken, others;
    for (const i64 rank : all) (is_at(rule, *resolved, rank) ? taken : others).push_back(rank);
    if (others.empty()) return false;
    if (!taken.empty()) {
      result_.push_back(
          {std::move(name), {Join::kTensor, tensor, {}}, std::nullopt, std::move(taken)});
    }
    free_ranks_[tensor] = std::move(others);
    return true;
  }

  const layout::Layout* find_layout(size_t tensor) const {
    const auto found = std::ranges::find(layouts_->tensors, tensor, &ResolvedTensor::tensor);
    return found == layouts_->tensors.end() ? nullptr : found->layout.get();
  }

  static bool is_at(const StoreRule& rule, const layout::Layout& layout, i64 rank) {
    return std::ranges::all_of(layout.index_axes(), [&](const layout::IndexAxis& axis) {
      const auto number = rule.at.find(axis.logical);
      if (number == rule.at.end()) return true;
      const i64 size = number->second < 0 ? axis.expr.size() : 0;
      return has_index(axis, number->second + size, layout.mesh(), rank);
    });
  }

  /// Takes a tensor that must be equal to `kept`, if the checkpoint has it.
  void leave_out(const StoreRule& rule, size_t kept, const std::string& name) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end() || !is_free_[found->second]) return;
    const TensorSpec& twin = tensors_[found->second];
    const TensorSpec& first = tensors_[kept];
    if (twin.dtype != first.dtype || twin.shape != first.shape) {
      throw Error(ErrorCode::kTied, "tensors that must be equal have other shapes or dtypes")
          .at(rule.place)
          .tensor(quote_for_message(twin.name))
          .note("found", describe(twin))
          .note("expected",
                fmt::format("{} as '{}'", describe(first), quote_for_message(first.name)))
          .help("take config.json and the tensors from one model");
    }
    is_free_[found->second] = false;
    left_out_.push_back({found->second, kept});
  }

  i64 rows_of_unit(const StoreRule& rule) const {
    const auto size = axis_sizes_.find(rule.interleave);
    if (size != axis_sizes_.end() && size->second % 2 == 0) return size->second;
    throw Error(ErrorCode::kStrategy,
                fmt::format("\"interleave\" names '{}', which is no axis with a known, even size",
                            quote_for_message(rule.interleave)))
        .at(rule.place)
        .note("found", size == axis_sizes_.end() ? "no size" : std::to_string(size->second));
  }

  static size_t axes_to_join(const StoreRule& rule, const TensorSpec& tensor) {
    if (rule.join <= std::max<size_t>(tensor.shape.size(), 1)) return rule.join;
    throw Error(ErrorCode::kStrategy, "\"join\" names more axes than the tensor has")
        .at(rule.place)
        .tensor(quote_for_message(tensor.name))
        .note("found", describe(tensor))
        .note("expected", fmt::format("{} axes or more", rule.join));
  }

  static std::string describe(const TensorSpec& spec) {
    return fmt::format("{} {}", shardtool::to_string(spec.dtype), shardtool::to_string(spec.shape));
  }

  void check_kept(const Mapping& mapping) const {
    const KeptNames kept(mapping);
    const Document* by = nullptr;
    std::vector<std::string> nameless;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const Document* const refused = is_free_[t] ? kept.refused_by(tensors_[t].name) : nullptr;
      if (refused == nullptr) continue;
      if (by == nullptr) by = refused;
      nameless.push_back(tensors_[t].name);
    }
    if (by == nullptr) return;
    Error error(ErrorCode::kNoRule, "a tensor has no name in the output files");
    error.at({by->name, 0, 0, "/store"}).tensor(quote_for_message(nameless.front()));
    const std::string advice = advice_to_rename(mapping.documents(), nameless);
    if (!advice.empty()) error.help(advice);
    throw error.help("leave it out with \"drop\", or name it with \"store\", in a mapping file");
  }

  /// Takes the parts of one output tensor, or of one index of its stack.
  Content joined(const StoreRule& rule, size_t first, const std::vector<std::string>& texts) {
    is_free_[first] = false;
    Content content{Join::kTensor, first, {}};
    const bool is_alone = rule.of.size() == 1 && rule.stack.empty();
    if (!is_alone) check_undivided(rule, first);
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
      check_undivided(rule, part->second);
      is_free_[part->second] = false;
      concat.parts.push_back({Join::kTensor, part->second, {}});
    }
    return concat;
  }

  /// Throws if the tensor has another name on some devices.
  void check_undivided(const StoreRule& rule, size_t tensor) const {
    if (!free_ranks_.contains(tensor)) return;
    throw Error(ErrorCode::kStrategy,
                "a tensor that is stored together with others has another name on some devices")
        .at(rule.place)
        .tensor(quote_for_message(tensors_[tensor].name))
        .help("give the tensor one rule of \"store\" with \"at\", or one without");
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
      const GlobMatcher matcher(rule.of[p]);
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
  const std::map<std::string, i64>& axis_sizes_;
  const Resolution* layouts_;
  std::map<size_t, std::vector<i64>> free_ranks_;  ///< of tensors that rules with "at" took in part
  std::vector<OutputTensor> result_;
  std::vector<LeftOut> left_out_;
};

}  // namespace

bool holds_for(const StoreRule& rule, const ModelConfig* config) {
  return std::all_of(rule.config.begin(), rule.config.end(), [&](const ConfigCondition& condition) {
    return config != nullptr && holds(condition, *config);
  });
}

std::optional<OutputTensors> output_tensors(const Mapping& mapping,
                                            std::span<const TensorSpec> tensors,
                                            const std::vector<bool>& is_stored,
                                            const ModelConfig* config,
                                            const std::map<std::string, i64>& axis_sizes,
                                            const Resolution* layouts) {
  const auto documents = mapping.documents();
  const bool has_rules = std::any_of(documents.begin(), documents.end(),
                                     [](const Document& d) { return !d.store.empty(); });
  if (!has_rules) return std::nullopt;
  Arranger arranger(tensors, is_stored, axis_sizes, layouts);
  for (const Document& document : documents) {
    for (const StoreRule& rule : document.store) {
      if (holds_for(rule, config)) arranger.apply(rule);
    }
  }
  return std::move(arranger).finish(mapping);
}

}  // namespace shardtool::mapping
