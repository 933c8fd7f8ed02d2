#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/args/engine_args.h"
#include "cli/args/mapping_args.h"
#include "cli/args/ops_args.h"
#include "cli/args/workload_args.h"
#include "cli/command.h"
#include "lib/api/plan.h"
#include "lib/api/planning/plan_ops.h"

namespace shardtool::cli {

/// Training flags, as typed.
struct TrainingArgs {
  bool train = false;
  std::optional<std::string> zero = {};
  std::optional<std::string> dp = {};
  std::optional<std::string> optimizer = {};
  std::optional<std::string> micro_batch = {};
  std::optional<std::string> sequence = {};
  bool sequence_parallel = false;
  std::optional<std::string> recompute = {};
  std::optional<std::string> virtual_stages = {};
};

/// Flags of `plan profile calibrate`, as typed.
struct CalibrateArgs {
  EngineArgs engine = {};
  std::optional<std::string> ranks = {};
  std::optional<std::string> size = {};
  std::optional<std::string> rounds = {};
};

/// Arguments of `shardtool plan`, as typed.
struct PlanArgs {
  std::vector<std::string> sources = {};
  MappingArgs mapping = {};
  std::optional<std::string> from = {};
  std::optional<std::string> to = {};
  std::optional<std::string> to_preset = {};
  std::optional<std::string> to_mesh = {};
  std::optional<std::string> layout = {};
  WorkloadArgs workload = {};
  TrainingArgs training = {};
  CalibrateArgs calibrate = {};
  OpsArgs ops = {};
  std::vector<std::string> classes = {};
  std::optional<std::string> what_if = {};
  std::vector<std::string> compare = {};
  std::optional<std::string> node_size = {};
  std::optional<std::string> profile = {};
  std::optional<std::string> graph = {};
  std::optional<std::string> explain = {};
  std::optional<std::string> format = {};
  std::optional<std::string> output = {};
  std::optional<std::string> html = {};
  std::optional<std::string> emit = {};
  bool fail_over_budget = false;
  bool exit_zero = false;
  bool detailed_exitcode = false;
};

/// Throws kUsage for a flag that changes nothing beside the others.
void require_effects(const PlanArgs& args);
/// Throws kUsage, and for a profile the errors of api::load_profile.
api::PlanOptions to_options(const PlanArgs& args);
/// The options of `plan --ops`. Throws kUsage, and the errors of api::load_profile and
/// api::read_graph.
api::OpPlanOptions to_ops_options(const PlanArgs& args);
/// Returns all flags of `plan`. `args` must outlive them.
std::vector<Argument> plan_arguments(PlanArgs& args);
}  // namespace shardtool::cli
