#pragma once

#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/engine/diagnosis/verdict.h"

/// JSON of verdicts, for other processes and for records of shares. Enums are numbers.
namespace shardtool::engine {

/// Throws kPeerLost for a number above that of `last`.
template <class Enum>
void take_number(const nlohmann::json& from, Enum& into, Enum last) {
  const auto number = from.get<i64>();
  if (number < 0 || number > static_cast<i64>(last)) {
    throw Error(ErrorCode::kPeerLost, "another process sent an invalid verdict");
  }
  into = static_cast<Enum>(number);
}
inline void from_json(const nlohmann::json& from, Outcome& into) {
  take_number(from, into, Outcome::kFail);
}
inline void from_json(const nlohmann::json& from, TierKind& into) {
  take_number(from, into, TierKind::kGolden);
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Fault, tier, layer, op, value, tensors, tensor, rank, token,
                                   feature, mismatches, diagnosis, layer_index, step)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ComputedBy, library, kernels)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OddWeight, tensor, is_shard, rank, nan, infinite)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ComparedBytes::Part, tensor, rank)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ComparedBytes, parts, differing, different, tensors)

}  // namespace shardtool::engine
