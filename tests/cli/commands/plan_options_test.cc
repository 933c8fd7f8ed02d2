#include <doctest/doctest.h>

#include "cli/commands/plan.h"

namespace shardtool::cli {
namespace {

TEST_CASE("everything that was typed for plan reaches the library") {
  PlanArgs args;
  args.sources = {"a", "b"};
  args.mapping.preset = "llama";
  args.from = "param";
  args.to = "compute";
  args.to_mesh = "tp=8";
  args.workload.budget = "80GB";
  args.workload.memory_fraction = "0.9";
  args.workload.overhead = "2GiB";
  args.workload.price = "2.50";
  args.training.train = true;
  args.training.zero = "3";
  args.training.dp = "16";
  args.training.optimizer = "sgd";
  args.training.micro_batch = "2";
  args.training.sequence = "4096";
  args.training.sequence_parallel = true;
  args.training.recompute = "full";
  args.training.virtual_stages = "2";
  args.classes = {"down=**.down_proj.weight"};
  args.what_if = "1,2,16";
  args.compare = {"gpt2"};
  args.node_size = "4";
  args.explain = "lm_head.weight";
  args.output = "plan.json";
  const auto options = to_options(args);
  CHECK(options.sources == std::vector<std::string>{"a", "b"});
  CHECK(options.mapping.preset == "llama");
  CHECK(options.mapping_is_given);
  CHECK(options.from == "param");
  CHECK(options.to == "compute");
  CHECK(to_string(*options.to_mesh) == "tp=8");
  CHECK(options.is_reshard());
  CHECK(options.device.bytes == 80'000'000'000);
  CHECK(options.device.fraction == 0.9);
  CHECK(options.device.overhead_bytes == i64{2} << 30);
  CHECK(options.device.price_per_hour == 2.5);
  REQUIRE(options.training.has_value());
  CHECK(options.training->zero_stage == 3);
  CHECK(options.training->data_parallel == 16);
  CHECK(options.training->state.optimizer == plan::kSgd.optimizer);
  CHECK(options.training->micro_batch == 2);
  CHECK(options.training->sequence == 4096);
  CHECK(options.workload.sequence_parallel);
  CHECK(options.training->recompute == plan::Recompute::kFull);
  CHECK(options.training->virtual_stages == 2);
  REQUIRE(options.mapping.settings.size() == 1);
  CHECK(options.mapping.settings[0] ==
        std::pair<std::string, std::string>("axes.layers.owners", R"({"rounds": 2})"));
  REQUIRE(options.classes.size() == 1);
  CHECK(options.classes[0].name == "down");
  CHECK(options.classes[0].glob == "**.down_proj.weight");
  CHECK(options.what_if == std::vector<i64>{1, 2, 16});
  CHECK(options.compare == args.compare);
  CHECK(options.node_size == 4);
  CHECK(options.explain == "lm_head.weight");
  CHECK(options.recipe);
}

TEST_CASE("the load of a server reaches the library") {
  PlanArgs args;
  args.sources = {"a"};
  args.workload.batch = "4";
  args.workload.prompt_len = "100";
  args.workload.prefix_hit = "0.5";
  args.workload.kv_dtype = "fp8";
  args.workload.block_tokens = "32";
  const auto options = to_options(args);
  CHECK(options.workload.batch == 4);
  CHECK(options.workload.prompt_len == 100);
  CHECK(options.workload.context == 100);
  CHECK(options.workload.prefix_hit == 0.5);
  CHECK(options.workload.kv_dtype == "fp8");
  CHECK(options.workload.block_tokens == 32);
}

TEST_CASE("with a source alone, plan has no budget, no workload, no training and no reshard") {
  PlanArgs args;
  args.sources = {"a"};
  const auto options = to_options(args);
  CHECK(!options.is_reshard());
  CHECK(!options.mapping_is_given);
  CHECK(!options.training.has_value());
  CHECK(!options.recipe);
  CHECK(options.device.bytes == 0);
  CHECK(options.device.fraction == 1);
  CHECK(options.workload.context == 0);
}

TEST_CASE("flags that only qualify a mapping do not make it the begin of a reshard") {
  PlanArgs args;
  args.sources = {"a"};
  args.to_mesh = "tp=2";
  args.mapping.require_even = true;
  args.mapping.settings = {"axes.heads.uneven=balanced"};
  CHECK(!to_options(args).mapping_is_given);
  args.mapping.tp = "4";
  CHECK(to_options(args).mapping_is_given);
}

}  // namespace
}  // namespace shardtool::cli
