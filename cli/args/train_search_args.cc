#include "cli/args/train_search_args.h"

#include <fmt/format.h>

#include <utility>

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

/// Throws kUsage if a flag is given that is about serving.
void require_no_serving(const SearchArgs& args) {
  const std::pair<const char*, bool> kServing[] = {
      {"--concurrency", args.concurrency.has_value()},
      {"--request-rate", args.request_rate.has_value()},
      {"--prefix-hit", args.workload.prefix_hit.has_value()},
      {"--dtype", args.dtype.has_value()},
      {"--prompt-len", args.workload.prompt_len.has_value()},
      {"--output-len", args.output_len.has_value()},
      {"--kv-dtype", args.workload.kv_dtype.has_value()},
      {"--block-tokens", args.workload.block_tokens.has_value()},
      {"--objective", args.objective.has_value()},
      {"--ttft", args.ttft.has_value()},
      {"--tpot", args.tpot.has_value()},
      {"--max-price", args.max_price.has_value()},
      {"--from", args.from.has_value()},
      {"--survive", args.survive.has_value()},
      {"--emit", args.emit.has_value()}};
  for (const auto& [flag, is_given] : kServing) {
    if (!is_given) continue;
    throw Error(ErrorCode::kUsage, fmt::format("{} is not a flag of a search for training", flag))
        .help("leave it out, or search a server without --train");
  }
}

}  // namespace

api::TrainSearchOptions to_train_search_options(const SearchArgs& args) {
  require_no_serving(args);
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
  if (args.training.optimizer == "momentum") options.state = plan::kMomentum;
  if (args.training.optimizer == "sgd") options.state = plan::kSgd;
  return options;
}

void require_no_training(const SearchArgs& args) {
  const TrainSearchArgs& training = args.training;
  const std::pair<const char*, bool> kTraining[] = {
      {"--sequence", training.sequence.has_value()},
      {"--batch", training.batch.has_value()},
      {"--micro-batch", training.micro_batch.has_value()},
      {"--zero", training.zero.has_value()},
      {"--recompute", training.recompute.has_value()},
      {"--optimizer", training.optimizer.has_value()}};
  for (const auto& [flag, is_given] : kTraining) {
    if (is_given)
      throw Error(ErrorCode::kUsage, fmt::format("{} is given without --train", flag))
          .help("add --train, or leave it out");
  }
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
      {.name = "--optimizer",
       .value = "NAME",
       .help = "with --train: 12, 8 or 4 bytes of state per parameter; default adam",
       .target = &training.optimizer,
       .choices = {"adam", "momentum", "sgd"},
       .advanced = true},
  };
}

}  // namespace shardtool::cli
