// Flags that change nothing beside others are refused, by name.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "cli/args/plan_args.h"
#include "cli/args/train_search_args.h"
#include "lib/base/error.h"

namespace shardtool::cli {
namespace {

void type_flag(const Argument& argument) {
  if (auto* const* flag = std::get_if<bool*>(&argument.target)) **flag = true;
  if (auto* const* one = std::get_if<std::string*>(&argument.target)) **one = "1";
  if (auto* const* all = std::get_if<std::vector<std::string>*>(&argument.target)) **all = {"1"};
  if (auto* const* maybe = std::get_if<std::optional<std::string>*>(&argument.target))
    **maybe = "1";
}

const Argument& flag_named(const std::vector<Argument>& arguments, const std::string& name) {
  const auto found = std::ranges::find(arguments, name, &Argument::name);
  REQUIRE_MESSAGE(found != arguments.end(), name);
  return *found;
}

/// Message that refuses a command line of plan; empty if none does.
std::string refusal(const std::vector<std::string>& words, const std::vector<std::string>& flags) {
  PlanArgs args;
  args.sources = words;
  const auto arguments = plan_arguments(args);
  for (const std::string& flag : flags) type_flag(flag_named(arguments, flag));
  try {
    require_effects(args);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    CHECK_FALSE(error.help_lines().empty());
    return error.message();
  }
  return "";
}

std::string search_refusal(const std::vector<std::string>& flags) {
  SearchArgs args;
  const auto arguments = search_arguments(args);
  for (const std::string& flag : flags) type_flag(flag_named(arguments, flag));
  try {
    require_effects(args);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    return error.message();
  }
  return "";
}

TEST_CASE("a form of plan refuses every flag that it does not read") {
  using Names = std::vector<std::string>;
  const struct {
    Names words;
    Names read;
  } kForms[] = {{{"diff", "a", "b"}, {"--format", "--html"}},
                {{"profile"}, {}},
                {{"profile", "show", "l4"}, {}},
                {{"profile", "calibrate"},
                 {"--output", "--ranks", "--size", "--rounds", "--engine", "--meeting"}}};
  PlanArgs args;
  for (const auto& [words, read] : kForms) {
    CAPTURE(words.back());
    CHECK(refusal(words, {}).empty());
    for (const Argument& flag : plan_arguments(args)) {
      if (!flag.environment.empty()) continue;
      CAPTURE(flag.name);
      const std::string told = refusal(words, {flag.name});
      const bool is_read = std::ranges::count(read, flag.name) > 0;
      CHECK(told.empty() == is_read);
      if (!is_read) CHECK(told.starts_with(flag.name + " does nothing in `plan " + words[0]));
    }
  }
}

TEST_CASE("plan --ops refuses what its planner does not read") {
  PlanArgs args;
  for (const Argument& flag : plan_arguments(args)) {
    if (!flag.environment.empty() || flag.name == "--ops") continue;
    CAPTURE(flag.name);
    const bool is_read = flag.group == "mapping" || flag.group == "op planner" ||
                         flag.name == "--batch" || flag.name == "--prompt-len" ||
                         flag.name == "--profile" || flag.name == "--graph" ||
                         flag.name == "--explain" || flag.name == "--format";
    CHECK(refusal({"model"}, {flag.name, "--ops"}).empty() == is_read);
  }
}

TEST_CASE("a flag of plan that needs others is refused without them, and taken with them") {
  using Names = std::vector<std::string>;
  const std::pair<std::string, Names> kNeeds[] = {
      {"--from", {"--to"}},
      {"--explain", {"--to-preset"}},
      {"--node-size", {"--to-mesh"}},
      {"--detailed-exitcode", {"--to-mesh"}},
      {"--zero", {"--train"}},
      {"--dp", {"--train"}},
      {"--optimizer", {"--train"}},
      {"--sequence", {"--train"}},
      {"--virtual-stages", {"--train"}},
      {"--micro-batch", {"--train", "--sequence"}},
      {"--recompute", {"--train", "--sequence"}},
      {"--sequence-parallel", {"--train", "--sequence"}},
      {"--sequence-parallel", {"--prompt-len"}},
      {"--prefix-hit", {"--prompt-len"}},
      {"--block-tokens", {"--context"}},
      {"--block-tokens", {"--prompt-len"}},
      {"--block-tokens", {"--budget"}},
      {"--block-tokens", {"--profile"}},
      {"--memory-fraction", {"--budget"}},
      {"--memory-fraction", {"--profile"}},
      {"--fail-over-budget", {"--profile"}},
      {"--solver", {"--ops"}},
      {"--generation", {"--ops"}},
      {"--compare-solvers", {"--ops"}}};
  for (const auto& [flag, others] : kNeeds) {
    CAPTURE(flag);
    CHECK(refusal({"model"}, {flag}).starts_with(flag + " does nothing without "));
    Names together = others;
    together.push_back(flag);
    CHECK(refusal({"model"}, together).empty());
  }
  CHECK(refusal({"model"}, {"--train", "--recompute"}) ==
        "--recompute does nothing without --sequence");
}

TEST_CASE("the load of a server is refused for a training") {
  for (const char* flag :
       {"--batch", "--prompt-len", "--context", "--prefix-hit", "--kv-dtype", "--block-tokens"}) {
    CHECK(refusal({"model"}, {"--train", flag}) ==
          std::string(flag) + " does nothing with --train");
  }
}

TEST_CASE("a flag that the environment may set is never refused for doing nothing") {
  CHECK(refusal({"model"}, {"--nccl", "--cuda-runtime", "--mpi-plugin"}).empty());
  CHECK(refusal({"diff", "a", "b"}, {"--nccl"}).empty());
}

TEST_CASE("every flag of plan search is read with --train or without it") {
  SearchArgs args;
  for (const Argument& flag : search_arguments(args)) {
    if (flag.positional() || flag.name == "--train") continue;
    CAPTURE(flag.name);
    const std::string serving = search_refusal({flag.name});
    const std::string training = search_refusal({flag.name, "--train"});
    CHECK((serving.empty() || training.empty()));
    CHECK(serving.empty() == (flag.group != "training"));
    if (!training.empty()) CHECK(training == flag.name + " does nothing with --train");
  }
  CHECK_FALSE(search_refusal({"--price", "--train"}).empty());
  CHECK_FALSE(search_refusal({"--tpot", "--train"}).empty());
  CHECK(search_refusal({"--budget", "--train"}).empty());
  CHECK(search_refusal({"--virtual-stages", "--train", "--pp"}) ==
        "--virtual-stages does nothing with --pp 1");
}

}  // namespace
}  // namespace shardtool::cli
