#pragma once

#include <optional>
#include <string>

#include "cli/args/write_args.h"
#include "cli/command.h"
#include "lib/api/bench_io.h"

namespace shardtool::cli {

/// Arguments of `shardtool bench io [FOLDER]`, as typed.
struct BenchArgs {
  std::string what = {};
  std::string folder = ".";
  std::optional<std::string> size = {};
  std::optional<std::string> rounds = {};
  ResourceArgs resources = {};
};

/// Throws kUsage.
api::BenchIoOptions to_options(const BenchArgs& args);

/// `args` must outlive the command.
Command bench_command(BenchArgs& args);

}  // namespace shardtool::cli
