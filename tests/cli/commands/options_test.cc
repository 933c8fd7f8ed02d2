#include <doctest/doctest.h>

#include <functional>

#include "cli/commands/diff.h"
#include "cli/commands/explain.h"
#include "cli/commands/inspect.h"
#include "cli/commands/merge.h"
#include "cli/commands/reshard.h"
#include "cli/commands/split.h"
#include "lib/base/error.h"

namespace shardtool::cli {
namespace {

std::string usage_error(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    return error.message();
  }
  return {};
}

TEST_CASE("everything that was typed for split reaches the library") {
  SplitArgs args;
  args.source = "src";
  args.mapping.file = "m.json";
  args.mapping.mesh = "ep=2,tp=4";
  args.mapping.axes = "serve";
  args.mapping.require_even = true;
  args.mapping.settings = {"axes.heads.uneven=balanced", "a=b=c"};
  args.ranks.ranks = "0-1,3";
  args.write.output = "out";
  args.write.max_file_size = "5GiB";
  args.write.resources = {"128MiB", "3"};
  args.write.force = args.write.dry_run = args.write.no_copy_side_files = true;
  const auto options = to_options(args);
  CHECK(options.source == "src");
  CHECK(options.mapping.path == "m.json");
  CHECK(to_string(options.mapping.mesh.value()) == "ep=2,tp=4");
  CHECK(options.mapping.layout == "serve");
  CHECK(options.mapping.require_even);
  CHECK_FALSE(options.mapping.allow_empty_shards);
  REQUIRE(options.mapping.settings.size() == 2);
  CHECK(options.mapping.settings[0] ==
        std::pair<std::string, std::string>("axes.heads.uneven", "balanced"));
  CHECK(options.mapping.settings[1] == std::pair<std::string, std::string>("a", "b=c"));
  CHECK(options.ranks == std::vector<i64>{0, 1, 3});
  CHECK(options.write.output == "out");
  CHECK(options.write.max_file_size == i64{5} << 30);
  CHECK(options.write.resources.max_memory == i64{128} << 20);
  CHECK(options.write.resources.threads == 3);
  CHECK(options.write.force);
  CHECK(options.write.dry_run);
  CHECK_FALSE(options.write.copy_other_files);
}

TEST_CASE("what was not typed keeps the library's defaults") {
  const auto options = to_options(SplitArgs{.source = "src"});
  const api::SplitOptions defaults;
  CHECK_FALSE(options.mapping.mesh.has_value());
  CHECK(options.ranks.empty());
  CHECK(options.write.max_file_size == defaults.write.max_file_size);
  CHECK(options.write.resources.max_memory == defaults.write.resources.max_memory);
  CHECK(options.write.resources.threads == defaults.write.resources.threads);
  CHECK(options.write.copy_other_files);
}

TEST_CASE("--tp, --ep and --pp make a mesh of pp, ep and tp, the last one fastest") {
  MappingArgs args;
  args.tp = "4";
  CHECK(to_string(to_mesh(args, kMapping).value()) == "tp=4");
  args.ep = "2";
  args.pp = "3";
  CHECK(to_string(to_mesh(args, kMapping).value()) == "pp=3,ep=2,tp=4");
}

TEST_CASE("flags that contradict each other are refused, by their own names") {
  MappingArgs args;
  args.mesh = "tp=2";
  args.tp = "2";
  CHECK(usage_error([&] { to_mesh(args, kMapping); }) == "--mesh and --tp contradict each other");
  CHECK(usage_error([&] { to_mesh(args, kDestination); }) ==
        "--to-mesh and --tp contradict each other");
  args = {.file = "m", .preset = "p"};
  CHECK(usage_error([&] { to_mapping_choice(args, kDestination); }) ==
        "--to and --to-preset contradict each other");
  CHECK(usage_error([] { to_ranks({.ranks = "0", .rank = "0"}); }) ==
        "--ranks and --rank contradict each other");
}

TEST_CASE("bad numbers in shorthands are refused before any mesh is made") {
  for (const auto* text : {"0", "-1", "4,ep=2", "", "2147483648"}) {
    CAPTURE(text);
    MappingArgs args;
    args.tp = text;
    CHECK(usage_error([&] { to_mesh(args, kMapping); }).find("--tp ") == 0);
  }
}

TEST_CASE("a setting needs a path and an equals sign") {
  for (const auto* text : {"", "axes", "=balanced"}) {
    CAPTURE(text);
    MappingArgs args;
    args.settings = {text};
    CHECK(usage_error([&] { to_mapping_choice(args, kMapping); }).find("--set ") == 0);
  }
}

TEST_CASE("reshard needs a destination") {
  ReshardArgs args{.sources = {"a"}};
  CHECK(usage_error([&] { to_options(args); }) == "reshard needs a destination");
  args.to.mesh = "tp=8";
  CHECK(to_string(to_options(args).to.mesh.value()) == "tp=8");
}

TEST_CASE("replicas are compared unless the first is asked for") {
  CHECK(to_options(MergeArgs{}).compare_replicas);
  CHECK_FALSE(to_options(MergeArgs{.replicas = "first"}).compare_replicas);
  ReshardArgs reshard{.sources = {"a"}, .replicas = "first"};
  reshard.to.preset = "llama";
  CHECK_FALSE(to_options(reshard).compare_replicas);
}

TEST_CASE("inspect has a mapping only when one was asked for") {
  InspectArgs args{.source = "src"};
  CHECK_FALSE(to_options(args).mapping.has_value());
  args.mapping.preset = "llama";
  CHECK(to_options(args).mapping.value().preset == "llama");
}

TEST_CASE("inspect lists tensors when asked, and then in a table format nothing else") {
  CHECK_FALSE(to_view({}).tensors);
  CHECK(to_view({}).summary);
  CHECK(to_view({.tensors = true}).summary);
  CHECK(to_view({.filter = "*"}).tensors);
  const auto query = to_view({.query = "shape,name", .format = "csv"});
  CHECK_FALSE(query.summary);
  CHECK(query.format == TableFormat::kCsv);
  REQUIRE(query.columns.size() == 2);
  CHECK(query.columns[0]->name == "shape");
  CHECK(usage_error([] { to_view({.query = "nmae"}); }) == "--query does not know 'nmae'");
  CHECK(usage_error([] { to_view({.query = "name,"}); }) == "--query does not know ''");
  CHECK(usage_error([] { to_view({.by = "layer"}); }) == "--by does not know 'layer'");
  CHECK_FALSE(to_view({.by = "module"}).by_dtype);
}

}  // namespace
}  // namespace shardtool::cli
