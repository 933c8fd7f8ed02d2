#include "lib/mapping/resolve/resolve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>

#include "lib/base/text.h"
#include "lib/mapping/assertions.h"
#include "lib/mapping/mesh_choice.h"
#include "lib/mapping/presets.h"
#include "lib/mapping/resolve/axis_table.h"
#include "lib/mapping/resolve/axis_usage.h"
#include "lib/mapping/resolve/block_alignment.h"
#include "lib/mapping/resolve/cut_checks.h"
#include "lib/mapping/resolve/cut_ledger.h"
#include "lib/mapping/resolve/followers.h"
#include "lib/mapping/resolve/matches.h"
#include "lib/mapping/resolve/reduced_bias.h"
#include "lib/mapping/resolve/tensor_cut.h"
#include "lib/mapping/resolve/tensor_numbers.h"
#include "lib/mapping/resolve/tied.h"

namespace shardtool::mapping {
namespace {

using layout::Layout;

/// A decision shared by all tensors with the same rule, dtype, shape and devices of their numbers.
struct Decision {
  std::shared_ptr<const Layout> layout;
  std::string strategy;
  std::vector<size_t> cuts;                  ///< indices into the ledger
  std::shared_ptr<const TensorDecision> by;  ///< null until the bias is decided
};

/// Returns a warning for each user's document whose "when" excludes this model.
std::vector<std::string> other_model(const Mapping& mapping, const ModelConfig* config) {
  std::vector<std::string> warnings;
  if (config == nullptr) return warnings;
  const auto architectures = config->architectures();
  const std::string architecture = architectures.empty() ? "" : architectures.front();
  for (const Document& document : mapping.documents()) {
    if (document.is_preset) continue;
    const auto warn_unless_in = [&](const std::vector<std::string>& meant,
                                    const std::string& found) {
      const bool fits = std::find(meant.begin(), meant.end(), found) != meant.end();
      if (meant.empty() || found.empty() || fits) return;
      warnings.push_back(fmt::format("{} is for {}, and the model is a {}", document.name,
                                     fmt::join(meant, ", "), found));
    };
    warn_unless_in(document.when.architectures, architecture);
    warn_unless_in(document.when.model_types, config->model_type());
    for (const ConfigCondition& condition : document.when.config) {
      if (holds(condition, *config)) continue;
      const nlohmann::json* value = config->find(condition.path);
      warnings.push_back(fmt::format("{} is for models with {} = {}, and {} says {}", document.name,
                                     condition.path, fmt::join(condition.values, " or "),
                                     config->file(), value == nullptr ? "nothing" : value->dump()));
    }
  }
  return warnings;
}

/// Returns "after_reduction" for the bias of a row-parallel layer, unless the rule sets something
/// else.
std::string bias_of(const Rule& rule, const TensorSpec& tensor) {
  if (rule.bias) return *rule.bias;
  const auto* strategy = std::get_if<StrategySpec>(&rule.cut);
  const bool row_parallel =
      strategy != nullptr && strategy->kind == layout::StrategyKind::kRowParallel;
  return row_parallel && tensor.shape.size() == 1 ? "after_reduction" : "";
}

/// Describes the layers in which the rule holds; empty if it holds in all.
std::string where_of(const Rule& rule) {
  std::vector<std::string> sets;
  for (const auto& [capture, set] : rule.where) sets.push_back(to_string(set));
  return fmt::format("{}", fmt::join(sets, " and "));
}

/// Returns the policy of the nearest document that has one.
template <class Policy>
std::optional<Policy> nearest(const Mapping& mapping, std::optional<Policy> Document::*field) {
  for (const Document& document : mapping.documents()) {
    if (document.*field) return document.*field;
  }
  return std::nullopt;
}

/// Adds advice to an error about an empty shard: fewer devices, or replicas.
Error& advise_on_empty(Error& e, const std::vector<UnitCut>& units, const Rule& rule,
                       const AxisTable& axes) {
  for (const UnitCut& cut : units) {
    const auto overs = layout::overs(cut.units);
    if (overs.empty()) continue;
    const i64 most = most_parts(cut.units);
    const i64 parts = extent(axes.mesh(), overs.front());
    if (most >= parts) continue;
    e.help(
        fmt::format("use at most {} along {}", plural(most, "device"), to_string(overs.front())));
    const bool is_axis = std::holds_alternative<std::vector<Dim>>(rule.cut);
    if (is_axis && !axes.has_groups(cut.name))
      e.help(fmt::format("or keep it whole on every device: --set axes.{}.mesh=null", cut.name));
    if (!is_axis) e.help("or keep it whole on every device: \"strategy\": \"replicate\"");
    return e.help("or allow it with --allow-empty-shards");
  }
  return e.help("allow it with --allow-empty-shards");
}

/// Warns of axes whose units several devices share: sums over all of them count a unit several
/// times.
std::vector<std::string> shared_units(const AxisTable& axes) {
  std::vector<std::string> warnings;
  for (const std::string& axis : axes.shared()) {
    const mesh::Over& over = axes.over(axis);
    warnings.push_back(fmt::format(
        "axis '{}' has fewer units than the {} devices along {}, so that devices share one: an "
        "engine that sums over all of them counts it several times (`shardtool validate` shows it)",
        axis, extent(axes.mesh(), over), to_string(over)));
  }
  return warnings;
}

/// Adds to errors about cuts inside blocks the treatments with which the whole mapping resolves.
class StraddleAdvice {
 public:
  /// `resolves_with` tries a value of "straddle"; called once per value, at the first such error.
  explicit StraddleAdvice(std::function<bool(std::string_view)> resolves_with)
      : resolves_with_(std::move(resolves_with)) {}

  Error added_to(Error error) {
    if (error.code() != ErrorCode::kBlockStraddle) return error;
    if (!treatments_) {
      treatments_.emplace();
      for (const std::string_view name : {"uneven-aligned", "pad", "replicate-scale", "refine"}) {
        if (resolves_with_(name)) treatments_->push_back(name);
      }
    }
    if (treatments_->empty()) return error;
    return std::move(error.help(
        fmt::format("or choose a treatment: --straddle {}", fmt::join(*treatments_, " or "))));
  }

 private:
  std::function<bool(std::string_view)> resolves_with_;
  std::optional<std::vector<std::string_view>> treatments_;
};

class Resolver {
 public:
  Resolver(const Mapping& mapping, std::span<const TensorSpec> tensors, const ModelConfig* config,
           const ResolveOptions& options, std::shared_ptr<Matches> matches = nullptr)
      : mapping_(mapping),
        options_(options),
        straddle_(nearest(mapping, &Document::straddle).value_or(Straddle::kError)),
        reduced_bias_(nearest(mapping, &Document::reduced_bias).value_or(ReducedBias::kReplicate)),
        mesh_(choose_mesh(mapping, options)),
        axes_(mapping, mesh_, config, options.layout),
        sizes_{[this](const SizeExpression& size) { return axes_.evaluate_size(size); }, config},
        matches_(matches != nullptr ? std::move(matches)
                                    : std::make_shared<Matches>(mapping, tensors, config, sizes_,
                                                                axes_, options.report)),
        rules_(matches_->rules()),
        tensors_(matches_->tensors()),
        assigned_(matches_->assigned()),
        numbers_(matches_->numbers(), axes_),
        ledger_(axes_, options.require_even, options.is_for_engine),
        followers_(matches_->companions(), sizes_, straddle_, options.allow_empty_shards) {
    result_.mesh = mesh_;
    result_.gathered = gathered_axes(mapping, mesh_);
    result_.warnings = other_model(mapping, config);
    const auto& warnings = matches_->warnings();
    result_.warnings.insert(result_.warnings.end(), warnings.begin(), warnings.end());
  }

  /// Returns what names say, for another mesh.
  std::shared_ptr<Matches> matches() {
    matches_->read_numbers(axes_);
    return matches_;
  }

  Resolution run() && {
    attempt([this] { check_assertions(tensors_, assigned_, rules_, axes_); });
    attempt([this] { align_axes(); });
    matches_->read_numbers(axes_);
    numbers_.read(*matches_);
    decide_all();
    attempt([this] {
      result_.tied = tied_groups(mapping_, tensors_, matches_->by_name(), result_.tensors);
    });
    std::erase_if(result_.tensors, [this](const ResolvedTensor& tensor) {
      return tensor.layout == nullptr || tensor.tensor >= matches_->stored();
    });
    result_.uneven = ledger_.uneven();
    for (std::string& warning : unused_axes(mapping_))
      result_.warnings.push_back(std::move(warning));
    result_.axis_sizes = axes_.known_sizes();
    for (std::string& warning : matches_->numbers().gaps(axes_))
      result_.warnings.push_back(std::move(warning));
    for (std::string& warning : shared_units(axes_)) result_.warnings.push_back(std::move(warning));
    for (std::string& warning : axes_without_tensors(rules_, axes_))
      result_.warnings.push_back(std::move(warning));
    return std::move(result_);
  }

 private:
  /// Runs a step about one tensor. Passes its error to `report`, or throws it if that is empty.
  template <class Step>
  void attempt(Step step) {
    try {
      step();
    } catch (const Error& error) {
      if (!options_.report) throw;
      options_.report(error);
    }
  }

  const PlacedRule& rule_of(size_t tensor) const {
    return rules_.rules()[assigned_[tensor].match.rule];
  }

  void align_axes() {
    if (straddle_ != Straddle::kUnevenAligned && straddle_ != Straddle::kPad) return;
    axes_.align(block_alignment(tensors_, assigned_, rules_, matches_->companions(), sizes_, axes_),
                straddle_ == Straddle::kPad);
  }

  /// Fills result_.tensors in the order of the specs, leaders before their followers. A dropped
  /// tensor has no layout.
  void decide_all() {
    result_.tensors.resize(tensors_.size());
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (assigned_[i].kind == Assignment::Kind::kRule)
        attempt([&] { result_.tensors[i] = by_rule(i); });
      if (assigned_[i].kind == Assignment::Kind::kUnknown) result_.tensors[i] = replicated(i);
      if (assigned_[i].kind == Assignment::Kind::kDropped) result_.dropped.push_back(i);
    }
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (assigned_[i].kind != Assignment::Kind::kCompanion) continue;
      const ResolvedTensor& leader = result_.tensors[assigned_[i].leader];
      if (leader.layout)
        attempt([&] {
          result_.tensors[i] = followers_.follow(assigned_[i].companion, i, leader, tensors_);
        });
    }
  }

  Decision decide(size_t tensor) {
    const PlacedRule& placed = rule_of(tensor);
    const TensorSpec& spec = tensors_[tensor];
    const Rule& rule = *placed.rule;
    TensorCut cut = std::holds_alternative<std::vector<Dim>>(rule.cut)
                        ? cut_by_dims(rule, spec.shape, axes_)
                        : cut_by_strategy(rule, *placed.document, spec.shape, axes_);
    auto index = numbers_.axes_of(tensor, rule, cut.units);
    Decision decision{nullptr, cut.strategy, {}, nullptr};
    for (const UnitCut& units : cut.units) decision.cuts.push_back(ledger_.enter(units));
    try {
      decision.layout = checked(Layout(mesh_, spec.shape, std::move(cut.axes), std::move(index)),
                                spec.dtype, options_.allow_empty_shards);
    } catch (Error& e) {
      if (e.code() != ErrorCode::kEmptyShard) throw;
      throw advise_on_empty(e, cut.units, rule, axes_);
    }
    count_places(*decision.layout);
    return decision;
  }

  /// Adds the layout's devices to places_. Throws above the limit, because memory is needed for
  /// each.
  void count_places(const Layout& layout) {
    constexpr i64 kMostPlaces = 1 << 22;
    places_ += std::ssize(layout.ranks());
    if (places_ <= kMostPlaces) return;
    throw Error(ErrorCode::kLimit,
                fmt::format("{} layouts over {} devices are more than fit into memory",
                            decisions_.size() + 1, mesh_.size()))
        .note("found",
              fmt::format("{} places of tensors of different rules, shapes or layers", places_))
        .note("expected", fmt::format("at most {}", kMostPlaces))
        .help("use a smaller mesh: replicas along an axis are equal, so one of them is enough");
  }

  Decision& decision_of(size_t tensor) {
    const TensorSpec& spec = tensors_[tensor];
    const auto key =
        std::tuple(assigned_[tensor].match.rule, spec.dtype, spec.shape, numbers_.homes_of(tensor));
    const auto found = decisions_.find(key);
    if (found != decisions_.end()) return found->second;
    try {
      return decisions_.emplace(key, decide(tensor)).first->second;
    } catch (Error& e) {
      decisions_.emplace(key, Decision{});  // reported once for all such tensors
      throw blame(e, tensor, tensors_, assigned_, rules_);
    }
  }

  ResolvedTensor by_rule(size_t tensor) {
    Decision& decision = decision_of(tensor);
    for (const size_t cut : decision.cuts) ledger_.count(cut, tensors_[tensor].name);
    if (decision.layout && !decision.by) decide_bias(decision, tensor);
    ResolvedTensor resolved{tensor, decision.layout, decision.by};
    for (const IndexNumber& number : numbers_.of(tensor)) resolved.numbers.push_back(number.value);
    return resolved;
  }

  void decide_bias(Decision& decision, size_t tensor) const {
    const PlacedRule& placed = rule_of(tensor);
    std::vector<std::string> transforms = transforms_of(*decision.layout);
    BiasDecision bias{decision.layout, {}, bias_of(*placed.rule, tensors_[tensor])};
    try {
      if (bias.convention == kFirstAndZeros) {
        bias = first_and_zeros(decision.layout);
      } else if (!bias.convention.empty()) {
        bias = decide_reduced_bias(reduced_bias_, decision.layout);
      }
    } catch (Error& e) {
      throw e.at(placed.rule->place);
    }
    decision.layout = bias.layout;
    decision.by = std::make_shared<const TensorDecision>(TensorDecision{
        placed.label, placed.rule->place, decision.strategy, bias.convention, std::move(transforms),
        std::move(bias.shifts), where_of(*placed.rule), false, placed.rule->sections});
  }

  ResolvedTensor replicated(size_t tensor) {
    auto& layout = replicated_[tensors_[tensor].shape];
    if (!layout) {
      layout = std::make_shared<const Layout>(Layout::replicated(mesh_, tensors_[tensor].shape));
      count_places(*layout);
    }
    if (!unknown_) {
      unknown_ = std::make_shared<const TensorDecision>(
          TensorDecision{"unknown", {mapping_.own().name, 0, 0, {}}, "replicate"});
    }
    return {tensor, layout, unknown_};
  }

  const Mapping& mapping_;
  const ResolveOptions& options_;
  Straddle straddle_;
  ReducedBias reduced_bias_;
  mesh::Mesh mesh_;
  AxisTable axes_;
  CompanionSizes sizes_;
  std::shared_ptr<Matches> matches_;
  const RuleMatcher& rules_;
  std::span<const TensorSpec> tensors_;
  const std::vector<Assignment>& assigned_;
  TensorNumbers numbers_;
  CutLedger ledger_;
  i64 places_ = 0;  ///< sum over all layouts of their devices
  std::map<std::tuple<size_t, Dtype, Shape, std::vector<i64>>, Decision> decisions_;
  std::map<Shape, std::shared_ptr<const Layout>> replicated_;
  std::shared_ptr<const TensorDecision> unknown_;
  Followers followers_;
  Resolution result_;
};

void warn_of_idle_axes(const Mapping& mapping, const ResolvedWith& resolved_with,
                       Resolution& result) {
  std::vector<std::string> warnings = idle_mesh_axes(mapping, result, resolved_with);
  std::ranges::move(warnings, std::back_inserter(result.warnings));
}

}  // namespace

Resolution resolve(const Mapping& mapping, std::span<const TensorSpec> tensors,
                   const ModelConfig* config, const ResolveOptions& options) {
  const Mapping with_options = with_settings(mapping, options.settings);
  const ResolvedWith resolved_with = [&](const std::string& path,
                                         const std::string& value) -> std::optional<Resolution> {
    ResolveOptions unreported = options;
    unreported.report = nullptr;
    try {
      const Mapping changed = with_settings(with_options, {{path, value}});
      return Resolver(changed, tensors, config, unreported).run();
    } catch (const Error&) {
      return std::nullopt;
    }
  };
  StraddleAdvice advice([&](std::string_view straddle) {
    return resolved_with("straddle", std::string(straddle)).has_value();
  });
  ResolveOptions advised = options;
  if (options.report)
    advised.report = [&](Error error) { options.report(advice.added_to(std::move(error))); };
  try {
    Resolution result = Resolver(with_options, tensors, config, advised).run();
    if (options.mesh) warn_of_idle_axes(with_options, resolved_with, result);
    return result;
  } catch (Error& error) {
    throw advice.added_to(std::move(error));
  }
}

Resolutions::Resolutions(const Mapping& mapping, std::span<const TensorSpec> tensors,
                         const ModelConfig* config, ResolveOptions options)
    : mapping_(with_settings(mapping, options.settings)),
      tensors_(tensors),
      config_(config),
      options_(std::move(options)) {}

Resolutions::~Resolutions() = default;

Resolution Resolutions::over(const mesh::Mesh& mesh) const {
  ResolveOptions options = options_;
  options.mesh = mesh;
  Resolution result = Resolver(mapping_, tensors_, config_, options, matches_on(options)).run();
  // Without advice, for which every mesh would be resolved twice.
  warn_of_idle_axes(
      mapping_, [](const auto&, const auto&) { return std::nullopt; }, result);
  return result;
}

std::shared_ptr<Matches> Resolutions::matches_on(const ResolveOptions& options) const {
  const std::lock_guard guard(mutex_);
  if (!matches_) matches_ = Resolver(mapping_, tensors_, config_, options).matches();
  return matches_;
}

}  // namespace shardtool::mapping
