#include "lib/mapping/match/last_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "lib/base/name_map.h"

namespace shardtool::mapping {
namespace {

/// Sizes that axes without a declared one have in tensors.
using AxisSizes = std::map<std::string, std::set<i64>>;

/// Extents that fit the words, for every axis of a weight.
using Fits = std::vector<std::set<i64>>;

/// Returns the axis of a dim without a declared size, or an empty text; nullopt if there are
/// several.
std::optional<std::string> undeclared_axis(const Dim& dim, const DeclaredSize& declared) {
  std::set<std::string> found;
  for_each_factor(dim, [&](const Factor& factor) {
    if (!factor.axis.empty() && !declared(factor.axis)) found.insert(factor.axis);
  });
  if (found.size() > 1) return std::nullopt;
  return found.empty() ? std::string() : *found.begin();
}

/// Returns "layers.0.mlp" for "layers.0.mlp.down_proj.weight".
std::string_view module_around(std::string_view name) {
  for (int parts = 0; parts < 2; ++parts) {
    const size_t dot = name.rfind('.');
    name = name.substr(0, dot == name.npos ? 0 : dot);
  }
  return name;
}

class LastWords {
 public:
  LastWords(std::span<TensorSpec> tensors, std::span<const PackedSpec> packed,
            const std::vector<Assignment>& assigned, const RuleMatcher& rules,
            const DeclaredSize& declared)
      : tensors_(tensors),
        packed_(packed),
        assigned_(assigned),
        rules_(rules),
        declared_(declared),
        stored_(tensors.size() - packed.size()) {
    std::set<Kind> seen;
    for (size_t t = 0; t < tensors.size(); ++t) {
      if (dims_of(t) != nullptr && seen.insert(kind_of(t)).second) add_sizes(t, sizes_);
    }
  }

  /// Sets the extents of a packed weight. Throws kShapeMismatch if several fit.
  void decide(size_t weight) {
    const auto* const dims = dims_of(weight);
    if (dims == nullptr) return;
    const auto [known, is_new] = fits_.try_emplace(kind_of(weight));
    if (is_new) known->second = fits(weight, sizes_);
    for (size_t a = 0; a < known->second.size(); ++a) {
      std::set<i64> extents = known->second[a];
      if (extents.size() > 1) extents = fits(weight, sizes_beside(weight))[a];
      if (extents.size() != 1 && !known->second[a].empty())
        throw several_fit(weight, a, known->second[a]);
      if (!extents.empty()) tensors_[weight].shape[a] = *extents.begin();
    }
  }

 private:
  /// Tensors that are alike in rule, shape and words are decided alike.
  using Kind = std::tuple<size_t, Shape, Shape>;

  bool is_packed(size_t tensor) const { return tensor >= stored_; }
  /// Least extents of a tensor; those of a stored one are its extents.
  const Shape& least(size_t tensor) const {
    return is_packed(tensor) ? packed_[tensor - stored_].least : tensors_[tensor].shape;
  }
  const Shape& most(size_t tensor) const {
    return is_packed(tensor) ? packed_[tensor - stored_].spec.shape : tensors_[tensor].shape;
  }
  Kind kind_of(size_t tensor) const {
    return {assigned_[tensor].match.rule, most(tensor), least(tensor)};
  }

  /// Returns the dims of the rule that cuts a tensor; null without such a rule, or for other axes.
  const std::vector<Dim>* dims_of(size_t tensor) const {
    if (assigned_[tensor].kind != Assignment::Kind::kRule) return nullptr;
    const Rule& rule = *rules_.rules()[assigned_[tensor].match.rule].rule;
    const auto* const dims = std::get_if<std::vector<Dim>>(&rule.cut);
    return dims == nullptr || dims->size() != most(tensor).size() ? nullptr : dims;
  }

  /// Adds the sizes of axes that a tensor tells. Dims that do not fit it are an error when it is
  /// cut.
  void add_sizes(size_t tensor, AxisSizes& sizes) const {
    const std::vector<Dim>& dims = *dims_of(tensor);
    for (size_t a = 0; a < dims.size(); ++a) {
      if (dims[a].sections.empty() || least(tensor)[a] != most(tensor)[a]) continue;
      try {
        const auto inferred = infer_size(dims[a], declared_, most(tensor)[a]);
        if (inferred) sizes[inferred->first].insert(inferred->second);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kShapeMismatch) throw;
      }
    }
  }

  /// Returns the sizes that the tensors of a weight's own module tell.
  AxisSizes sizes_beside(size_t weight) {
    if (modules_.empty()) {
      for (size_t t = 0; t < tensors_.size(); ++t)
        modules_[module_around(tensors_[t].name)].push_back(t);
    }
    AxisSizes sizes;
    for (const size_t tensor : modules_.at(module_around(tensors_[weight].name))) {
      if (dims_of(tensor) != nullptr) add_sizes(tensor, sizes);
    }
    return sizes;
  }

  Fits fits(size_t weight, const AxisSizes& sizes) const {
    const std::vector<Dim>& dims = *dims_of(weight);
    Fits found(dims.size());
    for (size_t a = 0; a < dims.size(); ++a) {
      const i64 from = least(weight)[a];
      const i64 to = most(weight)[a];
      if (dims[a].sections.empty() || from == to) continue;
      for (const i64 extent : extents(dims[a], sizes)) {
        if (from <= extent && extent <= to) found[a].insert(extent);
      }
    }
    return found;
  }

  /// Returns the extents of a dim by the sizes of its axis without a declared one.
  std::set<i64> extents(const Dim& dim, const AxisSizes& sizes) const {
    const auto axis = undeclared_axis(dim, declared_);
    if (!axis) return {};
    if (axis->empty()) return {extent_of(dim, declared_)};
    std::set<i64> found;
    const auto known = sizes.find(*axis);
    if (known == sizes.end()) return found;
    for (const i64 size : known->second) {
      found.insert(extent_of(dim, [&](const std::string& name) {
        return name == *axis ? std::optional(size) : declared_(name);
      }));
    }
    return found;
  }

  Error several_fit(size_t weight, size_t axis, const std::set<i64>& extents) const {
    return std::move(
        Error(ErrorCode::kShapeMismatch,
              fmt::format("axis {} of a packed weight has codes beyond it or not, because its dim "
                          "'{}' has several sizes in other tensors",
                          axis, (*dims_of(weight))[axis].text))
            .tensor(tensors_[weight].name)
            .note("found", fmt::format("{} that fit its words", fmt::join(extents, " and ")))
            .note("expected", "one size, or one in the tensors beside the weight")
            .help("give the axis a \"size\" in \"axes\""));
  }

  std::span<TensorSpec> tensors_;
  std::span<const PackedSpec> packed_;
  const std::vector<Assignment>& assigned_;
  const RuleMatcher& rules_;
  const DeclaredSize& declared_;
  size_t stored_;  ///< tensors before the packed weights
  AxisSizes sizes_;
  std::map<Kind, Fits> fits_;
  NameViewMap<std::vector<size_t>> modules_;  ///< their tensors; empty until they are needed
};

}  // namespace

void leave_out_last_codes(std::span<TensorSpec> tensors, std::span<const PackedSpec> packed,
                          const std::vector<Assignment>& assigned, const RuleMatcher& rules,
                          const DeclaredSize& declared, const ErrorSink& report) {
  if (packed.empty()) return;
  LastWords words(tensors, packed, assigned, rules, declared);
  for (size_t weight = tensors.size() - packed.size(); weight < tensors.size(); ++weight) {
    try {
      words.decide(weight);
    } catch (const Error& error) {
      if (!report) throw;
      report(error);
    }
  }
}

}  // namespace shardtool::mapping
