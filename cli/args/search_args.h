#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/args/mapping_args.h"
#include "cli/args/workload_args.h"
#include "cli/command.h"
#include "lib/api/plan_search.h"

namespace shardtool::cli {

/// Flags of `shardtool plan search --train`, as typed.
struct TrainSearchArgs {
  bool train = false;
  std::optional<std::string> batch = {};
  std::optional<std::string> sequence = {};
  std::optional<std::string> micro_batch = {};
  std::optional<std::string> zero = {};
  std::optional<std::string> recompute = {};
  std::optional<std::string> virtual_stages = {};
  std::optional<std::string> optimizer = {};
};

/// Arguments of `shardtool plan search`, as typed.
struct SearchArgs {
  std::vector<std::string> sources = {};
  MappingArgs mapping = {};
  WorkloadArgs workload = {};
  TrainSearchArgs training = {};
  std::optional<std::string> profile = {};
  std::optional<std::string> graph = {};
  std::optional<std::string> devices = {};
  std::optional<std::string> output_len = {};
  std::optional<std::string> concurrency = {};
  std::optional<std::string> request_rate = {};
  std::optional<std::string> dtype = {};
  std::optional<std::string> objective = {};
  std::optional<std::string> ttft = {};
  std::optional<std::string> tpot = {};
  std::optional<std::string> max_price = {};
  std::optional<std::string> from = {};
  std::optional<std::string> survive = {};
  std::optional<std::string> format = {};
  std::optional<std::string> html = {};
  std::optional<std::string> emit = {};
  bool sequence_parallel = false;
  bool exit_zero = false;
};

/// Converts what searches of servers and of training have in common: the plan, the sizes that are
/// kept, and the numbers of devices. Throws as to_search_options does.
api::SearchOptions to_common_options(const SearchArgs& args);
/// Throws kUsage, and the errors of api::load_profile and api::read_graph.
api::SearchOptions to_search_options(const SearchArgs& args);
/// Returns all arguments of `plan search`. `args` must outlive them.
std::vector<Argument> search_arguments(SearchArgs& args);

}  // namespace shardtool::cli
