#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "lib/api/plan.h"

namespace shardtool::cli {

/// Workload and device memory, as typed.
struct WorkloadArgs {
  std::optional<std::string> batch = {};
  std::optional<std::string> prompt_len = {};
  std::optional<std::string> context = {};
  std::optional<std::string> prefix_hit = {};
  std::optional<std::string> kv_dtype = {};
  std::optional<std::string> block_tokens = {};
  std::optional<std::string> budget = {};
  std::optional<std::string> memory_fraction = {};
  std::optional<std::string> overhead = {};
  std::optional<std::string> price = {};
};

/// Parses a whole number in [least, 2^31 - 1]; `otherwise` if none was typed. Throws kUsage.
i64 count_or(const char* flag, const std::optional<std::string>& typed, i64 otherwise,
             i64 least = 1);
inline constexpr i64 kLargestAmount = 1'000'000'000;
/// Parses a plain decimal number in [0, most]; `otherwise` if none was typed. Throws kUsage.
double number_or(const char* flag, const std::optional<std::string>& typed, double otherwise,
                 i64 most = kLargestAmount);
/// Returns a word that is not empty. Throws kUsage.
std::string filled(const char* flag, std::string word);
/// Returns the words between commas. Throws kUsage for an empty one.
std::vector<std::string> words_of_list(const char* flag, const std::string& text);
/// Parses "1,2,4", numbers of devices. Throws kUsage.
std::vector<i64> counts_of(const char* flag, const std::string& text);

// Throw kUsage for numbers that are none.

api::Workload to_workload(const WorkloadArgs& args);
api::DeviceBudget to_budget(const WorkloadArgs& args);
/// Loads a hardware profile. Its domain size is the node size; without --budget its memory is the
/// budget, and what its runtime takes is the default of --overhead. Throws the errors of
/// api::load_profile.
void use_hardware(const std::string& name_or_file, const WorkloadArgs& args,
                  api::PlanOptions& options);

/// Returns the flags of the memory of a device, and its price.
std::vector<Argument> budget_arguments(WorkloadArgs& args);
/// Returns the flag of the share of a prompt that is cached.
Argument prefix_hit_argument(WorkloadArgs& args);
/// Returns the flags of the cache.
std::vector<Argument> cache_arguments(WorkloadArgs& args);
/// Returns the flags of one batch, and those of the memory and the cache.
std::vector<Argument> workload_arguments(WorkloadArgs& args);

}  // namespace shardtool::cli
