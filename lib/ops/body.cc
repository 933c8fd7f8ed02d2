#include "lib/ops/body.h"

#include <fmt/format.h>

#include "lib/base/error.h"

namespace shardtool::ops {

using index::AxisMap;

bool is_narrower(const AxisMap& one, const AxisMap& other) {
  return other.global_size() == one.global_size() && other.image_size() < one.image_size();
}

kernels::ActivationKind activation_of(const Word& word, const mapping::ModelConfig& config) {
  std::string name = word.value;
  if (!word.config.empty()) name = config.text(word.config).value_or(word.value);
  if (const auto kind = kernels::parse_activation(name)) return *kind;
  throw Error(ErrorCode::kUnsupported, fmt::format("the activation '{}' is not known", name));
}

AxisMap units_of(const AxisMap& features, i64 unit, const std::string& what) {
  auto units = index::coarsen(features, unit);
  if (units) return *std::move(units);
  throw Error(ErrorCode::kUnsupported,
              fmt::format("a cut of '{}' falls inside a unit of {} features", what, unit))
      .note("found", to_string(features));
}

bool has_weight(const BoundOp& op, size_t which) {
  return op.weights.size() > which && !op.weights[which].empty();
}

template <class N>
SmallWeight<N> numbers_of(StoredWeight stored, kernels::NumberMap map) {
  const i64 count = std::ssize(stored.bytes) * 8 / bits(stored.dtype);
  SmallWeight<N> weight{std::move(stored.region), std::vector<N>(static_cast<size_t>(count))};
  to_numbers(stored.dtype, map, stored.bytes.data(), count, weight.data.data());
  return weight;
}

template <class N>
SmallWeight<N> load_small(const WeightReader& weights, kernels::NumberMap map, size_t tensor,
                          i64 rank) {
  return numbers_of<N>(weights.read(tensor, rank), map);
}

template <class N>
std::vector<N> load_vector(const OpAt<N>& at, size_t tensor, const AxisMap& features) {
  auto weight = load_small<N>(at.weights, at.inputs.map, tensor, at.rank);
  const Part<N> stored{weight.region.back(), std::move(weight.data)};
  return aligned(stored, features, 1, at.weights.name(tensor)).data.values();
}

template <class N>
std::vector<N> load_rows(const OpAt<N>& at, size_t weight, const AxisMap& features, i64 unit) {
  const size_t tensor = at.op.weights[weight].front();
  const size_t axis = features_axis(at.op.op->weights[weight]);
  auto stored = load_small<N>(at.weights, at.inputs.map, tensor, at.rank);
  const Part<N> rows{index::scale(stored.region.at(axis), unit), std::move(stored.data)};
  return aligned(rows, index::scale(features, unit), 1, at.weights.name(tensor)).data.values();
}

template <class N>
AxisMap features_of(const OpAt<N>& at, size_t weight) {
  const index::Region region = at.weights.region(at.op.weights[weight].front(), at.rank);
  return region.at(features_axis(at.op.op->weights[weight]));
}

template <class N>
AxisMap features_with_weights(const OpAt<N>& at, i64 unit) {
  AxisMap best = at.in[0]->features;
  for (size_t i = 0; i < at.op.weights.size(); ++i) {
    if (at.op.weights[i].empty()) continue;
    const AxisMap held = index::scale(features_of(at, i), unit);
    if (is_narrower(best, held)) best = held;
  }
  return best;
}

template <class N>
std::vector<i64> places_of_shared(const OpAt<N>& at, const AxisMap& heads, i64 shared,
                                  size_t operand, i64 unit) {
  const std::string& name = at.op.op->in[operand];
  const AxisMap where = index::inverse(units_of(at.in[operand]->features, unit, name));
  // Padding heads have no operand: use the first one that is there.
  if (heads.local_size() > 0 && at.in[operand]->width() == 0) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("rank {} has heads but nothing of '{}'", at.rank, name));
  }
  std::vector<i64> places(static_cast<size_t>(heads.local_size()));
  for (const index::Piece& piece : heads.pieces()) {
    for (i64 i = 0; i < piece.size; ++i) {
      const i64 head = (piece.global + i) / shared;
      const auto found = head < where.local_size() ? where(head) : std::nullopt;
      if (!found) {
        throw Error(ErrorCode::kUnsupported,
                    fmt::format("rank {} has query heads but not their head {} of '{}'", at.rank,
                                head, name));
      }
      places[static_cast<size_t>(piece.local + i)] = *found;
    }
  }
  return places;
}

#define SHARDTOOL_INSTANTIATE(N)                                                            \
  template SmallWeight<N> numbers_of(StoredWeight, kernels::NumberMap);                     \
  template SmallWeight<N> load_small(const WeightReader&, kernels::NumberMap, size_t, i64); \
  template std::vector<N> load_vector(const OpAt<N>&, size_t, const AxisMap&);              \
  template std::vector<N> load_rows(const OpAt<N>&, size_t, const AxisMap&, i64);           \
  template AxisMap features_of(const OpAt<N>&, size_t);                                     \
  template AxisMap features_with_weights(const OpAt<N>&, i64);                              \
  template std::vector<i64> places_of_shared(const OpAt<N>&, const AxisMap&, i64, size_t, i64);
SHARDTOOL_INSTANTIATE(Field)
SHARDTOOL_INSTANTIATE(double)
SHARDTOOL_INSTANTIATE(float)
#undef SHARDTOOL_INSTANTIATE

}  // namespace shardtool::ops
