#include "lib/mapping/resolve/matches.h"

#include "lib/mapping/match/last_words.h"
#include "lib/mapping/resolve/unused_entries.h"

namespace shardtool::mapping {
namespace {

/// Returns the tensors followed by the packed weights; empty if there are no packed weights.
std::vector<TensorSpec> followed_by(std::span<const TensorSpec> tensors,
                                    std::span<const PackedSpec> packed) {
  if (packed.empty()) return {};
  std::vector<TensorSpec> all(tensors.begin(), tensors.end());
  for (const PackedSpec& weight : packed) all.push_back(weight.spec);
  return all;
}

/// Sizes of axes as far as the mapping and the config give them. Errors are reported where a tensor
/// is cut by the axis.
DeclaredSize given_sizes(AxisTable& axes) {
  return [&axes](const std::string& axis) -> std::optional<i64> {
    try {
      return axes.has(axis) ? axes.size_if_given(axis) : std::nullopt;
    } catch (const Error&) {
      return std::nullopt;
    }
  };
}

}  // namespace

Matches::Matches(const Mapping& mapping, std::span<const TensorSpec> tensors,
                 const ModelConfig* config, const CompanionSizes& sizes, AxisTable& axes,
                 const ErrorSink& report)
    : rules_(mapping, config),
      companions_(mapping),
      stored_(tensors.size()),
      packed_(packed_weights(tensors, companions_, sizes, report)),
      with_packed_(followed_by(tensors, packed_)),
      tensors_(with_packed_.empty() ? tensors : with_packed_),
      by_name_(index_by_name(tensors_)),
      warnings_(unused_entries(mapping, tensors, by_name_)) {
  assigned_ = assign(mapping, tensors_, by_name_, config, rules_, companions_, warnings_, report);
  leave_out_last_codes(with_packed_, packed_, assigned_, rules_, given_sizes(axes), report);
}

void Matches::read_numbers(const AxisTable& axes) {
  if (!numbers_of_.empty()) return;
  std::vector<std::vector<IndexNumber>> numbers_of(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (assigned_[i].kind != Assignment::Kind::kRule) continue;
    const PlacedRule& placed = rules_.rules()[assigned_[i].match.rule];
    if (placed.rule->index.empty()) continue;
    const auto captures = rules_.captures(assigned_[i].match, tensors_[i].name);
    for (const auto& [capture, axis] : placed.rule->index) {
      axes.require(axis, placed.rule->place);
      numbers_.add(placed, axis, tensors_[i].name, captures.at(capture));
      numbers_of[i].push_back({&axis, captures.at(capture).value});
    }
  }
  numbers_of_ = std::move(numbers_of);
}

}  // namespace shardtool::mapping
