#include "cli/args/workload_args.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "cli/size_argument.h"
#include "lib/api/catalogue/profiles.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr i64 kMany = (i64{1} << 31) - 1;

}  // namespace

i64 count_or(const char* flag, const std::optional<std::string>& typed, i64 otherwise, i64 least) {
  return typed ? parse_count(flag, *typed, least, kMany) : otherwise;
}

double number_or(const char* flag, const std::optional<std::string>& typed, double otherwise,
                 i64 most) {
  if (!typed) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(typed->c_str(), &end);
  const bool is_plain = !typed->empty() && *end == '\0' && std::isfinite(value) && value >= 0 &&
                        value <= static_cast<double>(most) &&
                        typed->find_first_not_of("0123456789.eE+-") == std::string::npos;
  if (is_plain) return value;
  throw Error(ErrorCode::kUsage, fmt::format("{} '{}' is not a number from 0 to {}", flag,
                                             quote_for_message(*typed), format_count(most)))
      .help(most > 2 ? "for example 2.49" : "for example 0.9");
}

std::string filled(const char* flag, std::string word) {
  if (!word.empty()) return word;
  throw Error(ErrorCode::kUsage, fmt::format("{} has an empty entry", flag));
}

std::vector<std::string> words_of_list(const char* flag, const std::string& text) {
  std::vector<std::string> words;
  for (const std::string_view word : split_at(text, ","))
    words.push_back(filled(flag, std::string(word)));
  return words;
}

std::vector<i64> counts_of(const char* flag, const std::string& text) {
  std::vector<i64> counts;
  for (const std::string& word : words_of_list(flag, text))
    counts.push_back(parse_count(flag, word, 1, api::kMostDevices));
  return counts;
}

api::Workload to_workload(const WorkloadArgs& args) {
  api::Workload workload;
  workload.batch = count_or("--batch", args.batch, workload.batch);
  workload.prompt_len = count_or("--prompt-len", args.prompt_len, 0);
  workload.context = count_or("--context", args.context, workload.prompt_len);
  workload.prefix_hit = number_or("--prefix-hit", args.prefix_hit, 0, 1);
  if (args.kv_dtype) workload.kv_dtype = filled("--kv-dtype", *args.kv_dtype);
  workload.block_tokens = count_or("--block-tokens", args.block_tokens, workload.block_tokens);
  return workload;
}

api::DeviceBudget to_budget(const WorkloadArgs& args) {
  api::DeviceBudget device;
  if (args.budget) device.bytes = parse_size("--budget", *args.budget);
  device.fraction = number_or("--memory-fraction", args.memory_fraction, device.fraction, 1);
  if (args.overhead) device.overhead_bytes = parse_size("--overhead", *args.overhead, 0);
  device.price_per_hour = number_or("--price", args.price, 0);
  return device;
}

void use_hardware(const std::string& name_or_file, const WorkloadArgs& args,
                  api::PlanOptions& options) {
  options.hardware = api::load_profile(name_or_file);
  options.node_size = options.hardware->domain();
  if (options.device.bytes > 0) return;
  options.device.bytes = options.hardware->usable_bytes;
  if (!args.overhead) options.device.overhead_bytes = options.hardware->runtime_bytes;
}

std::vector<Argument> budget_arguments(WorkloadArgs& args) {
  return {
      {.name = "--budget",
       .value = "SIZE",
       .help = "memory of one device: says if the model fits into it",
       .target = &args.budget},
      {.name = "--memory-fraction",
       .value = "F",
       .help = "fraction of the device's memory that may be used, from 0 to 1; default 1",
       .target = &args.memory_fraction,
       .advanced = true},
      {.name = "--overhead",
       .value = "SIZE",
       .help = "memory of a device that contexts, communicators and graphs take; default 0 with "
               "--budget, else that of --profile",
       .target = &args.overhead,
       .advanced = true},
      {.name = "--price",
       .value = "AMOUNT",
       .help = "price of one device per hour, in any currency",
       .target = &args.price,
       .advanced = true},
  };
}

Argument prefix_hit_argument(WorkloadArgs& args) {
  return {.name = "--prefix-hit",
          .value = "SHARE",
          .help =
              "share of a prompt's tokens, from 0 to below 1, that the cache has from earlier "
              "prompts: a prefill computes the others; default 0",
          .target = &args.prefix_hit};
}

std::vector<Argument> cache_arguments(WorkloadArgs& args) {
  return {
      {.name = "--kv-dtype",
       .value = "TYPE",
       .help = "type of the KV cache: bf16, fp8, int8, ...; default the model's own",
       .target = &args.kv_dtype,
       .advanced = true},
      {.name = "--block-tokens",
       .value = "N",
       .help = "tokens in one block of a paged KV cache, default 16",
       .target = &args.block_tokens,
       .advanced = true},
  };
}

std::vector<Argument> workload_arguments(WorkloadArgs& args) {
  std::vector<Argument> arguments{
      {.name = "--batch",
       .value = "N",
       .help =
           "sequences at a time, on all ranks together, default 1; a rank counts ceil(N / groups) "
           "of them where groups of ranks have sequences of their own: experts over --ep, fsdp, "
           "replicas",
       .target = &args.batch},
      {.name = "--prompt-len",
       .value = "N",
       .help = "tokens of a prompt, which pass through the model at once (prefill)",
       .target = &args.prompt_len,
       .advanced = true},
      {.name = "--context",
       .value = "N",
       .help = "tokens of each sequence in the KV cache, with those of its prompt; default "
               "--prompt-len",
       .target = &args.context},
      prefix_hit_argument(args),
  };
  arguments.back().advanced = true;
  append(arguments, budget_arguments(args));
  append(arguments, cache_arguments(args));
  return arguments;
}

}  // namespace shardtool::cli
