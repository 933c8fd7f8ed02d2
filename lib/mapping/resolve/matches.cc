#include "lib/mapping/resolve/matches.h"

#include <iterator>

#include "lib/mapping/match/packed_weights.h"
#include "lib/mapping/resolve/unused_entries.h"

namespace shardtool::mapping {
namespace {

/// Returns the tensors followed by the packed weights; empty if there are no packed weights.
std::vector<TensorSpec> followed_by(std::span<const TensorSpec> tensors,
                                    std::vector<TensorSpec> packed) {
  if (packed.empty()) return packed;
  std::vector<TensorSpec> all(tensors.begin(), tensors.end());
  std::move(packed.begin(), packed.end(), std::back_inserter(all));
  return all;
}

}  // namespace

Matches::Matches(const Mapping& mapping, std::span<const TensorSpec> tensors,
                 const ModelConfig* config, const CompanionSizes& sizes, const ErrorSink& report)
    : rules_(mapping, config),
      companions_(mapping),
      stored_(tensors.size()),
      with_packed_(followed_by(tensors, packed_weights(tensors, companions_, sizes, report))),
      tensors_(with_packed_.empty() ? tensors : with_packed_),
      by_name_(index_by_name(tensors_)),
      warnings_(unused_entries(mapping, tensors, by_name_)) {
  assigned_ = assign(mapping, tensors_, by_name_, config, rules_, companions_, warnings_, report);
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
