#include "cli/args/train_search_args.h"

#include <fmt/format.h>

#include <utility>

#include "cli/args/flag_rule.h"
#include "cli/size_argument.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr std::pair<const char*, plan::Recompute> kRecomputes[] = {
    {"none", plan::Recompute::kNone},
    {"selective", plan::Recompute::kSelective},
    {"full", plan::Recompute::kFull}};

plan::Recompute recompute_of(const std::string& word) {
  for (const auto& [name, recompute] : kRecomputes) {
    if (word == name) return recompute;
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("--recompute '{}' is not a list of none, selective and full",
                          quote_for_message(word)))
      .help("for example --recompute none,full");
}

using SearchRule = FlagRule<SearchArgs>;

constexpr SearchRule kSearchRules[] = {
    {[](const SearchArgs& args) { return args.training.train; },
     "with --train",
     "leave it out, or search a server without --train",
     SearchRule::Of::kThese,
     {"--concurrency", "--request-rate", "--prefix-hit", "--dtype", "--prompt-len", "--output-len",
      "--kv-dtype", "--block-tokens", "--objective", "--ttft", "--tpot", "--max-price", "--price",
      "--from", "--survive", "--emit"}},
    {[](const SearchArgs& args) { return !args.training.train; },
     "without --train",
     "add --train, or leave it out",
     SearchRule::Of::kThese,
     {"training"}},
    {[](const SearchArgs& args) { return args.mapping.pp == "1"; },
     "with --pp 1",
     "it is about the ranks of a pipeline: leave it out, or give --pp 2 or more",
     SearchRule::Of::kThese,
     {"--virtual-stages"}},
};

}  // namespace

api::TrainSearchOptions to_train_search_options(const SearchArgs& args) {
  const api::SearchOptions common = to_common_options(args);
  api::TrainSearchOptions options;
  options.plan = common.plan;
  options.pinned = common.pinned;
  options.devices = common.devices;
  options.sequence_parallel = args.sequence_parallel;
  options.sequence = count_or("--sequence", args.training.sequence, 0);
  options.batch = count_or("--batch", args.training.batch, 0);
  if (args.training.micro_batch)
    options.micro_batches = counts_of("--micro-batch", *args.training.micro_batch);
  if (args.training.zero) {
    options.zero_stages.clear();
    constexpr i64 kLastStage = 3;
    for (const std::string& word : words_of_list("--zero", *args.training.zero))
      options.zero_stages.push_back(parse_count("--zero", word, 0, kLastStage));
  }
  if (args.training.recompute) {
    options.recomputes.clear();
    for (const std::string& word : words_of_list("--recompute", *args.training.recompute))
      options.recomputes.push_back(recompute_of(word));
  }
  if (args.training.virtual_stages)
    options.virtual_stages = counts_of("--virtual-stages", *args.training.virtual_stages);
  if (args.training.optimizer == "momentum") options.state = plan::kMomentum;
  if (args.training.optimizer == "sgd") options.state = plan::kSgd;
  return options;
}

void require_effects(const SearchArgs& args) {
  SearchArgs typed = args;
  require_effects<SearchArgs>(typed, search_arguments(typed), kSearchRules);
}

std::vector<Argument> train_search_arguments(SearchArgs& args) {
  TrainSearchArgs& training = args.training;
  return {
      {.name = "--train",
       .help = "search how to train: replicas, stages, ZeRO, and what each layer recomputes",
       .target = &training.train},
      {.name = "--batch",
       .value = "N",
       .help = "with --train: sequences of one step, on all devices together",
       .target = &training.batch,
       .advanced = true},
      {.name = "--sequence",
       .value = "N",
       .help = "with --train: tokens of a sequence",
       .target = &training.sequence,
       .advanced = true},
      {.name = "--micro-batch",
       .value = "N,N,...",
       .help =
           "with --train: sequences that a replica, or each of its ep groups, computes at once, "
           "to choose from; default 1",
       .target = &training.micro_batch,
       .advanced = true},
      {.name = "--zero",
       .value = "STAGE,...",
       .help = "with --train: ZeRO stages to choose from, over dp, and over ep for all weights but "
               "experts; default 0,1,2,3",
       .target = &training.zero,
       .advanced = true},
      {.name = "--recompute",
       .value = "WHAT,...",
       .help = "with --train: what a layer may compute again for the backward pass; default "
               "none,selective,full",
       .target = &training.recompute,
       .advanced = true},
      {.name = "--virtual-stages",
       .value = "N,N,...",
       .help = "with --train: virtual pipeline stages of every rank of pp to choose from, as in "
               "Megatron's interleaved schedule; others than these are not tried; default 1",
       .target = &training.virtual_stages,
       .advanced = true},
      {.name = "--optimizer",
       .value = "NAME",
       .help = "with --train: 12, 8 or 4 bytes of state per parameter; default adam",
       .target = &training.optimizer,
       .choices = {"adam", "momentum", "sgd"},
       .advanced = true},
  };
}

}  // namespace shardtool::cli
