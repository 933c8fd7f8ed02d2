#pragma once

#include <optional>
#include <string>

#include "cli/args/mapping_args.h"
#include "cli/command.h"
#include "lib/api/explain.h"

namespace shardtool::cli {

/// Arguments of `shardtool explain`, as typed: an error id, or a checkpoint and a tensor.
struct ExplainArgs {
  std::string subject = {};
  std::optional<std::string> tensor = {};
  MappingArgs mapping = {};
};

/// Options for a checkpoint and a tensor. Throws kUsage.
api::ExplainOptions to_options(const ExplainArgs& args);
/// `args` must outlive the command.
Command explain_command(ExplainArgs& args);

}  // namespace shardtool::cli
