#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "lib/api/transform.h"

namespace shardtool::cli {

/// Memory and thread limits, as typed.
struct ResourceArgs {
  std::optional<std::string> max_memory = {};
  std::optional<std::string> threads = {};
};

/// Output options, as typed; the same for split, merge and reshard.
struct WriteArgs {
  std::string output = {};
  std::string layout = "plain";
  std::optional<std::string> dtype = {};
  bool dequantize = false;
  std::optional<std::string> max_file_size = {};
  ResourceArgs resources = {};
  std::string io = "auto";
  bool no_copy_side_files = false;
  std::string hash = "xxh3";
  bool dry_run = false;
  bool force = false;
  bool resume = false;
  bool verify = false;
  std::optional<std::string> share = {};
};

/// Selection of the ranks to write, as typed.
struct RankArgs {
  std::optional<std::string> ranks = {};
  std::optional<std::string> rank = {};
};

std::vector<Argument> resource_arguments(ResourceArgs& args);
std::vector<Argument> write_arguments(WriteArgs& args);
std::vector<Argument> rank_arguments(RankArgs& args);

// All throw kUsage.
api::WriteOptions to_write_options(const WriteArgs& args);
/// Returns an empty list if neither flag was typed.
std::vector<i64> to_ranks(const RankArgs& args);

/// Replaces the defaults where something was typed.
void set_resources(const ResourceArgs& args, exec::Resources& resources);

}  // namespace shardtool::cli
