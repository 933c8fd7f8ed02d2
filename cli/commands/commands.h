#pragma once

#include "cli/command.h"
#include "cli/commands/bench.h"
#include "cli/commands/check.h"
#include "cli/commands/completion.h"
#include "cli/commands/diff.h"
#include "cli/commands/doctor.h"
#include "cli/commands/explain.h"
#include "cli/commands/graphs.h"
#include "cli/commands/help.h"
#include "cli/commands/init.h"
#include "cli/commands/inspect.h"
#include "cli/commands/layouts.h"
#include "cli/commands/merge.h"
#include "cli/commands/plan.h"
#include "cli/commands/presets.h"
#include "cli/commands/reshard.h"
#include "cli/commands/split.h"
#include "cli/commands/validate.h"
#include "cli/session.h"

namespace shardtool::cli {

/// All commands and the storage of their arguments.
class Commands {
 public:
  Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  const GlobalArgs& global() const { return global_; }
  const CommandTree& tree() const { return tree_; }

 private:
  GlobalArgs global_;
  InspectArgs inspect_;
  SplitArgs split_;
  MergeArgs merge_;
  ReshardArgs reshard_;
  PlanArgs plan_;
  CheckArgs check_;
  ValidateArgs validate_;
  DiffArgs diff_;
  ExplainArgs explain_;
  ShowArgs layouts_;
  ShowArgs presets_;
  ShowArgs graphs_;
  InitArgs init_;
  DoctorArgs doctor_;
  BenchArgs bench_;
  CompletionArgs completion_;
  HelpArgs help_;
  CommandTree tree_;
};

}  // namespace shardtool::cli
