#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/api/mapping/applied_mapping.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transfer/target_layout.h"
#include "lib/format/manifest/manifest.h"
#include "lib/plan/reshard.h"

namespace shardtool::api {

/// The part of a plan that `reshard --plan` executes, and the state of the input that it requires.
struct PlanRecipe {
  std::vector<std::string> sources;       ///< as typed
  std::string config;                     ///< path of config.json as typed; empty: the sources' own
  std::vector<format::FileRecord> files;  ///< names, sizes and header hashes, over all sources
  std::string values_xxh3;                ///< of the names and digests of tensors; empty: not known
  std::string mapping;                    ///< documents, as a manifest stores them
  std::string mesh;                       ///< mesh of the destination, "tp=8"
  std::string layout;                     ///< an entry of "layouts"; empty: none
  bool require_even = false;
  bool allow_empty_shards = false;
  std::string target_xxh3;  ///< of the regions of all tensors on all ranks
  i64 node_size = 1;        ///< devices per node: senders on the same node come first
  i64 bytes_moved = 0;
  i64 bytes_kept = 0;
  i64 transfers = 0;
};

/// Makes the recipe of a reshard from the source's own holders.
PlanRecipe make_recipe(const std::vector<std::string>& typed, const LogicalCheckpoint& source,
                       const AppliedMapping& to, const MappingChoice& choice, i64 node_size,
                       const plan::ReshardPlan& plan);

/// Writes the recipe as a JSON object.
std::string to_json(const PlanRecipe& recipe);
/// Reads the recipe of a sealed document (api/plan.h). Throws kPlanInvalid if it is not a plan, was
/// edited, comes from another version, or has no recipe.
PlanRecipe parse_plan(const std::string& text, const std::string& path);
/// Limit for plan files; plans of the largest models are smaller.
inline constexpr i64 kMaxPlanBytes = i64{1} << 30;
inline constexpr int kMaxPlanDepth = 64;
/// Reads the recipe of a file. Also throws what store::read_text throws.
PlanRecipe read_plan(const std::string& path);

/// Opens the plan's sources, or others with the same files, as the plan's mapping reads them.
/// Throws the errors of open_finished, and kInputChanged with the file if the files differ from
/// those of the plan, or their manifest has digests of other values.
LogicalCheckpoint open_planned(const PlanRecipe& recipe, const std::vector<std::string>& sources,
                               const std::string& plan_path);

/// Returns the destination of a plan. The source must be from open_planned. Throws kPlanInvalid if
/// any region differs from the plan.
AppliedMapping apply_recipe(const PlanRecipe& recipe, const LogicalCheckpoint& source,
                            const std::string& plan_path);

/// Plans the move again from the holders that it will copy between. Throws kPlanInvalid if a count
/// differs from the recipe's.
plan::ReshardPlan recount(const PlanRecipe& recipe, const LogicalCheckpoint& source,
                          const TargetLayout& target, const std::string& plan_path);

}  // namespace shardtool::api
