#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/api/mapping_choice.h"
#include "lib/api/transfer/logical_checkpoint.h"
#include "lib/api/transfer/target_layout.h"
#include "lib/checkpoint/manifest.h"
#include "lib/plan/reshard.h"

namespace shardtool::api {

/// What `reshard --plan` needs to do exactly what was planned, and what it must find to do so.
struct PlanRecipe {
  std::vector<std::string> sources;           ///< as they were typed
  std::vector<checkpoint::FileRecord> files;  ///< of all sources: names, sizes, header hashes
  std::string mapping;                        ///< documents as a manifest stores them
  std::string mesh;                           ///< of the destination, "tp=8"
  std::string layout;                         ///< an entry of "layouts", or empty
  bool require_even = false;
  bool allow_empty_shards = false;
  std::string target_xxh3;  ///< of everything that every rank will hold (layout_hash)
  i64 node_size = 1;        ///< devices of one node: senders of the own node come first
  i64 bytes_moved = 0;
  i64 bytes_kept = 0;
  i64 transfers = 0;
};

/// The recipe of a reshard from the source's own holders.
PlanRecipe make_recipe(const std::vector<std::string>& typed, const LogicalCheckpoint& source,
                       const AppliedMapping& to, const MappingChoice& choice, i64 node_size,
                       const plan::ReshardPlan& plan);

/// XXH3-128 of the names, types and regions of all tensors on all ranks.
std::string layout_hash(const LogicalCheckpoint& source, const AppliedMapping& applied);

/// The recipe as one JSON object.
std::string to_json(const PlanRecipe& recipe);
/// The recipe in a sealed document (api/plan.h). Throws kPlanInvalid when it is no plan, was
/// edited, comes from another version, or has no recipe.
PlanRecipe parse_plan(const std::string& text, const std::string& path);
/// More than a plan of the largest models takes.
inline constexpr i64 kMaxPlanBytes = i64{1} << 30;
inline constexpr int kMaxPlanDepth = 64;
/// The same from a file; throws what io::read_text throws, too.
PlanRecipe read_plan(const std::string& path);

/// Throws kInputChanged, naming the file, when the opened files are not those of the plan.
void check_same_input(const PlanRecipe& recipe, const LogicalCheckpoint& source,
                      const std::string& plan_path);

/// The destination of a plan, over a source that check_same_input passed. Throws kPlanInvalid when
/// it is not what the plan says, to the last region.
AppliedMapping apply_recipe(const PlanRecipe& recipe, const LogicalCheckpoint& source,
                            const std::string& plan_path);

/// The plan of what is about to be executed, from the holders that bytes will be copied between.
/// Throws kPlanInvalid when any count differs from the recipe's.
plan::ReshardPlan recount(const PlanRecipe& recipe, const LogicalCheckpoint& source,
                          const TargetLayout& target, const std::string& plan_path);

}  // namespace shardtool::api
