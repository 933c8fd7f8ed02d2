#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/api/planning/plan_reshard.h"
#include "lib/api/planning/search/served_model.h"

namespace shardtool::api {

/// A layout as it would serve if memory had no limit.
struct BeyondMemory {
  ServingRow row;
  std::string reason;  ///< why it does not fit, or not all sequences
};

/// Rows and refusals of some layouts.
struct PricedLayouts {
  std::vector<ServingRow> rows;
  std::vector<RefusedLayout> refused;
  std::vector<BeyondMemory> beyond;
  std::string no_move;  ///< why a row has no cost of a move; empty if each has one
};

/// Weights that move from today's layout: those of the searched model or, if it is cast, of the
/// same model as it is stored. Each device then casts what it holds.
struct MovedWeights {
  const ServedModel* model = nullptr;
  MoveStart start;
};

/// Returns the types of the cache to choose from; an empty one is the model's own.
std::vector<std::string> kv_dtypes_of(const SearchOptions& options);

/// Prices the layouts of one replica, which differ in dp alone. Rows have the cost of a move of
/// `moved`, if it is set. Requires at least one layout; throws as search_layouts does.
PricedLayouts price_layouts(const SearchOptions& options, const ServedModel& model,
                            const std::optional<MovedWeights>& moved,
                            const std::vector<ServingLayout>& layouts);

}  // namespace shardtool::api
