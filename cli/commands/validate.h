#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/args/engine_args.h"
#include "cli/args/write_args.h"
#include "cli/command.h"
#include "lib/api/demo.h"
#include "lib/api/validate.h"

namespace shardtool::cli {

/// Arguments of `shardtool validate`, as typed.
struct ValidateArgs {
  std::vector<std::string> shards = {};
  std::string reference = {};
  std::optional<std::string> mapping = {};
  std::optional<std::string> axes = {};
  std::optional<std::string> config = {};
  std::optional<std::string> graph = {};
  std::string golden = {};
  std::optional<std::string> demo = {};
  std::optional<std::string> sizes = {};
  std::optional<std::string> ranks = {};
  EngineArgs engine = {};
  bool quick = false;
  bool ordered = false;
  bool native = false;
  bool values = false;
  std::optional<std::string> seed = {};
  std::optional<std::string> tokens = {};
  std::optional<std::string> require_coverage = {};
  std::optional<std::string> share = {};
  std::optional<std::string> verdicts = {};
  std::optional<std::string> html = {};
  std::optional<std::string> format = {};
  ResourceArgs resources = {};
};

/// Throws kUsage.
api::ValidateOptions to_options(const ValidateArgs& args);
api::DemoRunOptions to_demo_options(const ValidateArgs& args);
/// `args` must outlive the command.
Command validate_command(ValidateArgs& args);

}  // namespace shardtool::cli
