#include "shardtool/mapping/resolve.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "shardtool/base/text.h"
#include "shardtool/mapping/assignment.h"
#include "shardtool/mapping/axis_table.h"
#include "shardtool/mapping/axis_usage.h"
#include "shardtool/mapping/companions.h"
#include "shardtool/mapping/cut_checks.h"
#include "shardtool/mapping/index_numbers.h"
#include "shardtool/mapping/mesh_choice.h"
#include "shardtool/mapping/rule_matcher.h"
#include "shardtool/mapping/tensor_cut.h"

namespace shardtool::mapping {
namespace {

using layout::Layout;
using Kind = Assignment::Kind;

std::string describe(const TensorSpec& tensor) {
  return fmt::format("{} {} {}", quote_for_message(tensor.name), shardtool::to_string(tensor.shape),
                     shardtool::to_string(tensor.dtype));
}

/// What is decided once for all tensors with the same rule, dtype, shape and place on index axes.
struct Decision {
  std::shared_ptr<const Layout> layout;
  std::string strategy;
  std::vector<std::string> transforms;
  std::vector<size_t> cuts;  ///< indices into Resolver::cuts_
};

/// A cut of some axis, and how often it was made.
struct CutCount {
  UnitCut cut;
  UnevenCut sizes;
};

/// A warning for each document of one's own whose "when" names other models than this one.
std::vector<std::string> other_model(const Mapping& mapping, const ModelConfig* config) {
  std::vector<std::string> warnings;
  const auto architectures = config == nullptr ? std::vector<std::string>{} : config->architectures();
  if (architectures.empty()) return warnings;
  for (const Document& document : mapping.documents()) {
    const auto& meant = document.when.architectures;
    const bool fits = std::find(meant.begin(), meant.end(), architectures.front()) != meant.end();
    if (document.is_preset || meant.empty() || fits) continue;
    warnings.push_back(fmt::format("{} is for {}, and the model is a {}", document.name,
                                   fmt::join(meant, ", "), architectures.front()));
  }
  return warnings;
}

class Resolver {
 public:
  Resolver(const Mapping& mapping, std::span<const TensorSpec> tensors, const ModelConfig* config,
           const ResolveOptions& options)
      : mapping_(mapping),
        tensors_(tensors),
        options_(options),
        mesh_(choose_mesh(mapping, options)),
        axes_(mapping, mesh_, config, options.layout),
        rules_(mapping),
        companions_(mapping),
        by_name_(index_by_name(tensors)) {
    result_.mesh = mesh_;
    result_.warnings = other_model(mapping, config);
    assigned_ = assign(mapping, tensors, by_name_, config, rules_, companions_, result_.warnings);
  }

  Resolution run() && {
    check_assertions();
    read_index_numbers();
    std::vector<std::optional<ResolvedTensor>> resolved(tensors_.size());
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (assigned_[i].kind == Kind::kRule) resolved[i] = by_rule(i);
      if (assigned_[i].kind == Kind::kUnknown) resolved[i] = replicated(i);
      if (assigned_[i].kind == Kind::kDropped) result_.dropped.push_back(i);
    }
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (assigned_[i].kind == Kind::kCompanion) resolved[i] = by_companion(i, *resolved[assigned_[i].leader]);
    }
    check_tied(resolved);
    report_uneven();
    for (auto& tensor : resolved) {
      if (tensor) result_.tensors.push_back(std::move(*tensor));
    }
    for (std::string& warning : unused_axes(mapping_)) result_.warnings.push_back(std::move(warning));
    result_.axis_sizes = axes_.known_sizes();
    return std::move(result_);
  }

 private:
  const PlacedRule& rule_of(size_t tensor) const { return rules_.rules()[assigned_[tensor].match.rule]; }

  /// "and 119 more": the other tensors of the same rule.
  std::string and_more(size_t tensor) const {
    const auto same = std::count_if(assigned_.begin(), assigned_.end(), [&](const Assignment& a) {
      return a.kind == Kind::kRule && a.match.rule == assigned_[tensor].match.rule;
    });
    return same > 1 ? fmt::format(" (and {} more)", same - 1) : "";
  }

  Error& blame(Error& e, size_t tensor) const {
    const PlacedRule& placed = rule_of(tensor);
    if (!e.place()) e.at(placed.rule->place);
    return e.tensor(tensors_[tensor].name)
        .note("tensor", describe(tensors_[tensor]) + and_more(tensor))
        .note("rule", fmt::format("{} ({}:{})", placed.label, placed.rule->place.file, placed.rule->place.line));
  }

  void check_assertions() {
    std::vector<i64> counts(rules_.rules().size());
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (assigned_[i].kind != Kind::kRule) continue;
      ++counts[assigned_[i].match.rule];
      const auto& dtypes = rule_of(i).rule->dtypes;
      if (dtypes.empty() || std::find(dtypes.begin(), dtypes.end(), tensors_[i].dtype) != dtypes.end()) continue;
      Error e(ErrorCode::kAssertion, fmt::format("a tensor of rule '{}' is {}", rule_of(i).label,
                                                 shardtool::to_string(tensors_[i].dtype)));
      std::vector<std::string_view> expected;
      for (const Dtype dtype : dtypes) expected.push_back(shardtool::to_string(dtype));
      throw blame(e.note("expected", fmt::format("{}", fmt::join(expected, " or "))), i);
    }
    for (size_t r = 0; r < counts.size(); ++r) check_count(rules_.rules()[r], rules_.is_used(r), counts[r]);
  }

  void check_count(const PlacedRule& placed, bool is_used, i64 found) {
    if (!placed.rule->count || !is_used) return;
    const i64 expected = axes_.evaluate_size(*placed.rule->count);
    if (found == expected) return;
    Error e(ErrorCode::kAssertion, fmt::format("rule '{}' decides {} tensors, its \"count\" is {}", placed.label,
                                               found, expected));
    e.at(placed.rule->place).note("count", placed.rule->count->text);
    const std::string origin = config_values(*placed.rule->count, axes_.config());
    if (!origin.empty()) e.note("config", origin);
    throw e;
  }

  void read_index_numbers() {
    captured_.resize(tensors_.size());
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (assigned_[i].kind != Kind::kRule || rule_of(i).rule->index.empty()) continue;
      const PlacedRule& placed = rule_of(i);
      const auto captures = rules_.captures(assigned_[i].match, tensors_[i].name);
      for (const auto& [capture, axis] : placed.rule->index) {
        axes_.require(axis, placed.rule->place);
        numbers_.add(placed, axis, tensors_[i].name, captures.at(capture));
        if (!axes_.over(axis).empty()) captured_[i].push_back({axis, captures.at(capture).value});
      }
    }
    numbers_.check_complete(axes_);
  }

  std::vector<layout::IndexAxis> index_axes(size_t tensor, std::vector<UnitCut>& units) {
    std::vector<layout::IndexAxis> found;
    for (const auto& [axis, number] : captured_[tensor]) {
      const i64 size = numbers_.size(axis, axes_);
      if (number >= size) {
        throw Error(ErrorCode::kShapeMismatch,
                    fmt::format("index {} is outside axis '{}' of size {}", number, axis, size))
            .note("config", axes_.size_origin(axis));
      }
      const UnitCut& cut = axes_.cut(axis, size);
      found.push_back({axis, cut.units, number});
      units.push_back(cut);
    }
    return found;
  }

  size_t count_cut(const UnitCut& cut) {
    const auto [at, is_new] = cut_of_.try_emplace({cut.name, to_string(cut.units)}, cuts_.size());
    if (is_new) cuts_.push_back({cut, {cut.name, part_sizes(cut, mesh_), {}, 0}});
    return at->second;
  }

  std::shared_ptr<const Layout> checked(Layout layout, Dtype dtype) const {
    if (!options_.allow_empty_shards) refuse_empty_shards(layout);
    refuse_sub_byte_cuts(layout, dtype);
    return std::make_shared<const Layout>(std::move(layout));
  }

  Decision decide(size_t tensor) {
    const PlacedRule& placed = rule_of(tensor);
    const TensorSpec& spec = tensors_[tensor];
    const auto* dims = std::get_if<std::vector<Dim>>(&placed.rule->cut);
    TensorCut cut = dims != nullptr
                        ? cut_by_dims(*dims, spec.shape, axes_)
                        : cut_by_strategy(std::get<StrategySpec>(placed.rule->cut), *placed.rule,
                                          placed.document->is_preset, spec.shape, axes_);
    auto index = index_axes(tensor, cut.units);
    Decision decision{nullptr, cut.strategy, {}, {}};
    for (const UnitCut& units : cut.units) decision.cuts.push_back(count_cut(units));
    refuse_uneven(decision);
    decision.layout = checked(Layout(mesh_, spec.shape, std::move(cut.axes), std::move(index)), spec.dtype);
    decision.transforms = padding_of(*decision.layout);
    return decision;
  }

  const Decision& decision_of(size_t tensor) {
    const TensorSpec& spec = tensors_[tensor];
    const auto key = std::tuple(assigned_[tensor].match.rule, spec.dtype, spec.shape, captured_[tensor]);
    const auto found = decisions_.find(key);
    if (found != decisions_.end()) return found->second;
    try {
      return decisions_.emplace(key, decide(tensor)).first->second;
    } catch (Error& e) {
      throw blame(e, tensor);
    }
  }

  /// "after_reduction" for the bias of a row-parallel layer, unless the rule says otherwise.
  static std::string bias_of(const Rule& rule, const TensorSpec& tensor) {
    if (rule.bias) return *rule.bias;
    const auto* strategy = std::get_if<StrategySpec>(&rule.cut);
    const bool row_parallel = strategy != nullptr && strategy->kind == layout::StrategyKind::kRowParallel;
    return row_parallel && tensor.shape.size() == 1 ? "after_reduction" : "";
  }

  ResolvedTensor by_rule(size_t tensor) {
    const Decision& decision = decision_of(tensor);
    for (const size_t cut : decision.cuts) {
      UnevenCut& sizes = cuts_[cut].sizes;
      if (sizes.tensors++ == 0) sizes.example_tensor = tensors_[tensor].name;
    }
    const PlacedRule& placed = rule_of(tensor);
    return {tensor,           placed.label, placed.rule->place, decision.layout, decision.strategy,
            bias_of(*placed.rule, tensors_[tensor]), decision.transforms};
  }

  ResolvedTensor replicated(size_t tensor) {
    auto& layout = replicated_[tensors_[tensor].shape];
    if (!layout) layout = std::make_shared<const Layout>(Layout::replicated(mesh_, tensors_[tensor].shape));
    return {tensor, "unknown", {mapping_.documents()[0].name, 0, 0, {}}, layout, "replicate", {}, {}};
  }

  ResolvedTensor by_companion(size_t tensor, const ResolvedTensor& leader) {
    const size_t companion = assigned_[tensor].companion;
    const PlacedCompanion& placed = companions_.all()[companion];
    const TensorSpec& spec = tensors_[tensor];
    auto& layout = followed_[{companion, leader.layout.get(), spec.shape, spec.dtype}];
    try {
      if (!layout) {
        layout = checked(companions_.layout(companion, *leader.layout, spec.shape, axes_.config()), spec.dtype);
      }
    } catch (Error& e) {
      if (!e.place()) e.at(placed.spec->place);
      throw e.tensor(spec.name).note("tensor", describe(spec)).note("follows", describe(tensors_[leader.tensor]));
    }
    return {tensor, placed.label, placed.spec->place, layout, std::string(to_string(placed.spec->kind)), {}, {}};
  }

  void check_tied(const std::vector<std::optional<ResolvedTensor>>& resolved) {
    for (auto& group : tied_groups(mapping_, by_name_)) {
      std::erase_if(group, [&](const std::string& name) { return !resolved[by_name_.at(name)]; });
      if (group.size() < 2) continue;
      const Layout& first = *resolved[by_name_.at(group[0])]->layout;
      for (const std::string& name : group) {
        const Layout& other = *resolved[by_name_.at(name)]->layout;
        if (first.ranks() == other.ranks() && first.shape() == other.shape() && same_regions(first, other)) continue;
        throw Error(ErrorCode::kTied, fmt::format("'{}' and '{}' are tied, but are not cut alike",
                                                  quote_for_message(group[0]), quote_for_message(name)))
            .tensor(name)
            .note(group[0], describe(tensors_[by_name_.at(group[0])]))
            .note(name, describe(tensors_[by_name_.at(name)]))
            .help("give both the same rule, or take them out of \"tied\"");
      }
      result_.tied.push_back(std::move(group));
    }
  }

  static bool same_regions(const Layout& a, const Layout& b) {
    return std::all_of(a.ranks().begin(), a.ranks().end(),
                       [&](i64 rank) { return a.region(rank) == b.region(rank); });
  }

  static bool is_uneven(const UnevenCut& cut) {
    return std::adjacent_find(cut.sizes.begin(), cut.sizes.end(), std::not_equal_to<>()) != cut.sizes.end();
  }

  void refuse_uneven(const Decision& decision) const {
    for (const size_t at : decision.cuts) {
      const CutCount& counted = cuts_[at];
      if (!is_uneven(counted.sizes) || !(options_.require_even || counted.cut.refuse_uneven)) continue;
      Error e = uneven_cut_error(counted.cut, counted.sizes.sizes);
      e.at(counted.cut.place);
      if (axes_.has(counted.cut.name)) {
        const std::string origin = axes_.size_origin(counted.cut.name);
        if (!origin.empty()) e.note("config", origin);
      }
      throw e;
    }
  }

  void report_uneven() {
    for (CutCount& counted : cuts_) {
      if (is_uneven(counted.sizes)) result_.uneven.push_back(std::move(counted.sizes));
    }
  }

  using Numbers = std::vector<std::pair<std::string, i64>>;

  const Mapping& mapping_;
  std::span<const TensorSpec> tensors_;
  const ResolveOptions& options_;
  mesh::Mesh mesh_;
  AxisTable axes_;
  RuleMatcher rules_;
  Companions companions_;
  TensorIndex by_name_;
  std::vector<Assignment> assigned_;
  std::vector<Numbers> captured_;  ///< by tensor: index axes that are cut, and the number on each
  IndexNumbers numbers_;
  std::vector<CutCount> cuts_;
  std::map<std::pair<std::string, std::string>, size_t> cut_of_;
  std::map<std::tuple<size_t, Dtype, Shape, Numbers>, Decision> decisions_;
  std::map<Shape, std::shared_ptr<const Layout>> replicated_;
  std::map<std::tuple<size_t, const Layout*, Shape, Dtype>, std::shared_ptr<const Layout>> followed_;
  Resolution result_;
};

}  // namespace

Resolution resolve(const Mapping& mapping, std::span<const TensorSpec> tensors, const ModelConfig* config,
                   const ResolveOptions& options) {
  const Mapping with_options = with_settings(mapping, options.settings);
  return Resolver(with_options, tensors, config, options).run();
}

std::string why(const ResolvedTensor& tensor) {
  const Place& place = tensor.rule_place;
  const std::string where = place.line > 0 ? fmt::format("{}:{}", place.file, place.line) : place.file;
  std::string text = fmt::format("rule '{}' ({}) ", tensor.rule, where);
  std::vector<std::string> cuts;
  for (size_t a = 0; a < tensor.layout->axes().size(); ++a) {
    const layout::LayoutAxis& axis = tensor.layout->axes()[a];
    if (axis.expr.is_sharded()) cuts.push_back(fmt::format("cuts {} as {}", axis_name(axis, a), to_string(axis.expr)));
  }
  for (const layout::IndexAxis& axis : tensor.layout->index_axes()) {
    cuts.push_back(fmt::format("puts it where index {} of '{}' lives, {}", axis.index, axis.logical, to_string(axis.expr)));
  }
  return text + (cuts.empty() ? "keeps it whole on every device" : fmt::format("{}", fmt::join(cuts, ", and ")));
}

i64 physical_axis_size(const mesh::Mesh& mesh, const mesh::Over& over) { return extent(mesh, over); }

i64 round_axis_for_partitioning(i64 size, const mesh::Mesh& mesh, const mesh::Over& over) {
  return round_up(size, physical_axis_size(mesh, over));
}

}  // namespace shardtool::mapping
