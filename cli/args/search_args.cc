#include "cli/args/search_args.h"

#include <fmt/format.h>

#include <utility>

#include "cli/args/emit_args.h"
#include "cli/args/html_file.h"
#include "cli/args/train_search_args.h"
#include "lib/api/catalogue/graphs.h"
#include "lib/api/transfer/cast_values.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/plan/collective/profile_list.h"

namespace shardtool::cli {
namespace {

api::PinnedSizes pinned_of(const MappingArgs& args) {
  const auto size = [](const char* flag, const std::optional<std::string>& typed) {
    return typed ? std::optional(count_or(flag, typed, 1)) : std::nullopt;
  };
  return {size("--pp", args.pp), size("--ep", args.ep), size("--tp", args.tp),
          args.expert_parallel};
}

/// Returns the flags of a mapping. Sizes are those that the search keeps; it chooses the mesh.
std::vector<Argument> pinned_arguments(MappingArgs& args) {
  std::vector<Argument> arguments = mapping_arguments(args, kMapping);
  std::erase_if(arguments, [](const Argument& argument) {
    return argument.name == "--mesh" || argument.name == "--axis-mapping";
  });
  const std::pair<const char*, const char*> kPinned[] = {
      {"--tp", "only layouts with so many tensor-parallel devices"},
      {"--ep",
       "only layouts with so many groups that have sequences of their own and share the experts"},
      {"--pp", "only layouts with so many pipeline stages"},
      {"--expert-parallel", "only layouts with whole experts on the devices of tp"}};
  for (Argument& argument : arguments) {
    const bool is_common = argument.name == "--mapping" || argument.name == "--tp";
    argument.advanced = !is_common;
    for (const auto& [name, help] : kPinned) {
      if (argument.name == name) argument.help = help;
    }
  }
  return arguments;
}

/// Parses a list of types to which floats can be cast. Throws kUsage.
std::vector<Dtype> dtypes_of(const std::string& text) {
  std::vector<Dtype> dtypes;
  for (const std::string& word : words_of_list("--dtype", text)) {
    const auto dtype = api::cast_type(word);
    if (!dtype) {
      throw Error(ErrorCode::kUsage, fmt::format("--dtype '{}' is not a list of bf16, f16 and f32",
                                                 quote_for_message(word)))
          .help("for example --dtype bf16");
    }
    dtypes.push_back(*dtype);
  }
  return dtypes;
}

std::vector<Argument> goal_arguments(SearchArgs& args) {
  return {
      {.name = "--objective",
       .value = "NAME",
       .help = "tokens per second and device (throughput, the default) or of one client "
               "(user), time of an answer (latency), throughput that keeps --ttft and --tpot "
               "(goodput), or price of a token (cost)",
       .target = &args.objective,
       .choices = {"throughput", "user", "latency", "goodput", "cost"}},
      {.name = "--ttft",
       .value = "MS",
       .help = "the longest time to the first token",
       .target = &args.ttft},
      {.name = "--tpot",
       .value = "MS",
       .help = "the longest time per output token; where all sequences that fit would exceed it, "
               "fewer run at once, as with --max-num-seqs of vLLM, but not with --objective user",
       .target = &args.tpot},
      {.name = "--max-price",
       .value = "AMOUNT",
       .help = "the highest price per hour of all devices together",
       .target = &args.max_price,
       .advanced = true},
      {.name = "--from",
       .value = "OUT",
       .help = "today's layout, an output folder or a file of `plan -o`: adds the bytes and the "
               "time of moving the weights from there to each layout; those that --dtype casts "
               "move uncast",
       .target = &args.from},
      {.name = "--survive",
       .value = "N",
       .help = "the load must fit when N devices are lost: the devices left hold it in some layout "
               "of the search, which is named",
       .target = &args.survive,
       .advanced = true},
  };
}

std::vector<Argument> output_arguments(SearchArgs& args) {
  return {
      {.name = "--format",
       .value = "NAME",
       .help = "how the report is printed",
       .target = &args.format,
       .choices = {"text", "json", "md"}},
      html_argument(args.html),
      emit_argument(args.emit),
      {.name = "--exit-zero",
       .help = "exit 0 when nothing fits and keeps the limits",
       .target = &args.exit_zero,
       .advanced = true},
  };
}

}  // namespace

api::SearchOptions to_common_options(const SearchArgs& args) {
  api::SearchOptions options;
  options.plan.sources = args.sources;
  MappingArgs mapping = args.mapping;  // without the sizes that the search is to keep
  mapping.tp = mapping.ep = mapping.pp = std::nullopt;
  mapping.expert_parallel = false;
  options.plan.mapping = to_mapping_choice(mapping, kMapping);
  options.pinned = pinned_of(args.mapping);
  options.plan.device = to_budget(args.workload);
  if (args.profile) use_hardware(*args.profile, args.workload, options.plan);
  if (args.graph) options.plan.graph = api::read_graph(*args.graph);
  if (args.devices) options.devices = counts_of("--devices", *args.devices);
  return options;
}

api::SearchOptions to_search_options(const SearchArgs& args) {
  api::SearchOptions options = to_common_options(args);
  options.plan.workload.sequence_parallel = args.sequence_parallel;
  if (args.workload.block_tokens)
    options.plan.workload.block_tokens = count_or("--block-tokens", args.workload.block_tokens, 1);
  options.prompt_len = count_or("--prompt-len", args.workload.prompt_len, 1024);
  options.answer_len = count_or("--output-len", args.output_len, 1024);
  if (args.concurrency) options.concurrency = counts_of("--concurrency", *args.concurrency);
  if (args.request_rate) options.request_rate = number_or("--request-rate", args.request_rate, 0);
  options.prefix_hit = number_or("--prefix-hit", args.workload.prefix_hit, 0, 1);
  if (args.dtype) options.dtypes = dtypes_of(*args.dtype);
  if (args.workload.kv_dtype)
    options.kv_dtypes = words_of_list("--kv-dtype", *args.workload.kv_dtype);
  options.objective = *plan::objective_named(args.objective.value_or("throughput"));
  options.from = args.from;
  options.survive = count_or("--survive", args.survive, 0, 0);
  constexpr double kUsPerMs = 1e3;
  constexpr double kSecondsPerHour = 3600;
  if (args.ttft) options.limits.ttft_us = number_or("--ttft", args.ttft, 0) * kUsPerMs;
  if (args.tpot) options.limits.tpot_us = number_or("--tpot", args.tpot, 0) * kUsPerMs;
  if (args.max_price)
    options.limits.price_per_s = number_or("--max-price", args.max_price, 0) / kSecondsPerHour;
  return options;
}

std::vector<Argument> search_arguments(SearchArgs& args) {
  std::vector<Argument> arguments{
      {.name = "MODEL",
       .help = "a checkpoint; more of them are other quantisations of the same model",
       .target = &args.sources,
       .required = true},
      {.name = "--profile",
       .value = "NAME|FILE",
       .help = "the hardware, see `shardtool plan profile list`",
       .target = &args.profile,
       .offers = plan::profile_names},
      {.name = "--devices",
       .value = "N,N,...",
       .help = "numbers of devices to choose from",
       .target = &args.devices},
      {.name = "--concurrency",
       .value = "N,N,...",
       .help = "numbers of clients to choose from; a client sends its next request when it has its "
               "answer",
       .target = &args.concurrency},
      {.name = "--request-rate",
       .value = "R",
       .help = "requests per second to the whole service, instead of --concurrency: each layout "
               "has the fewest sequences at once that answer them, by Little's law",
       .target = &args.request_rate},
      {.name = "--prompt-len",
       .value = "N",
       .help = "tokens of a prompt, default 1024",
       .target = &args.workload.prompt_len},
      {.name = "--output-len",
       .value = "N",
       .help = "tokens of an answer, default 1024",
       .target = &args.output_len},
      prefix_hit_argument(args.workload),
      {.name = "--dtype",
       .value = "TYPE,...",
       .help = "types to which the weights may be cast, too, as `split --dtype` does, and "
               "`--dequantize` where they are quantised; bf16, f16, f32",
       .target = &args.dtype},
      {.name = "--graph",
       .value = "FILE",
       .help = "what the model computes, instead of its family's graph",
       .target = &args.graph,
       .advanced = true},
      {.name = "--sequence-parallel",
       .help = "try prompts, or training, with activations that are cut by tokens over tp, too",
       .target = &args.sequence_parallel,
       .advanced = true},
  };
  append_group(arguments, "goal", goal_arguments(args));
  append_group(arguments, "report", output_arguments(args));
  append_group(arguments, "training", train_search_arguments(args));
  append_group(arguments, "memory", budget_arguments(args.workload));
  append_group(arguments, "memory", cache_arguments(args.workload));
  append_group(arguments, "mapping", pinned_arguments(args.mapping));
  return arguments;
}

}  // namespace shardtool::cli
