// `reshard --plan` executes exactly the plan, byte for byte, or does not start.

#include "lib/api/planning/plan_file.h"

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "lib/api/plan.h"
#include "tests/api/model_files.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using nlohmann::json;
using test::ModelFiles;
using test::TempFolder;

PlanOptions to_mesh(const std::string& parts, const std::string& mesh) {
  PlanOptions options;
  options.sources = {parts};
  options.to_mesh = mesh::parse_mesh(mesh);
  options.recipe = true;
  return options;
}

/// Smallest document that can be applied.
std::string document(const PlanReport& report, const std::string& version = SHARDTOOL_VERSION) {
  return R"({"format_version":"1.0","tool":{"name":"shardtool","version":")" + version +
         R"("},"command":"plan","apply":)" + report.recipe;
}

std::string saved(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  return path;
}

TransformReport apply_plan(const std::string& plan, const std::string& output) {
  ReshardOptions options;
  options.plan = plan;
  options.write.output = output;
  return reshard(options);
}

/// Elements of each tensor by (rank, tensor), from a folder's manifest.
std::map<std::pair<std::string, i64>, std::set<i64>> held_in(const std::string& folder) {
  std::ifstream file(folder + "/manifest.json");
  const json manifest = json::parse(file);
  std::map<std::pair<std::string, i64>, std::set<i64>> held;
  for (const auto& [name, tensor] : manifest.at("tensors").items()) {
    for (const json& shard : tensor.at("shards")) {
      std::set<i64> elements{0};
      size_t axis = 0;
      for (const json& runs : shard.at("slices")) {
        std::set<i64> longer;
        const i64 extent = tensor.at("shape").at(axis++).get<i64>();
        for (const i64 outer : elements) {
          for (const json& run : runs) {
            if (!run.is_array()) continue;
            for (i64 i = run.at(0); i < run.at(1).get<i64>(); ++i)
              longer.insert(outer * extent + i);
          }
        }
        elements = std::move(longer);
      }
      held[{name, shard.at("rank").get<i64>()}] = std::move(elements);
    }
  }
  return held;
}

/// Bytes per element of each tensor, from a folder's manifest.
std::map<std::string, i64> element_bytes(const std::string& folder) {
  std::ifstream file(folder + "/manifest.json");
  const json manifest = json::parse(file);
  std::map<std::string, i64> bytes;
  for (const auto& [name, tensor] : manifest.at("tensors").items())
    bytes[name] = bits(parse_dtype(tensor.at("dtype").get<std::string>()).value()) / 8;
  return bytes;
}

/// Bytes of the new parts that their rank lacked, and had, in the old ones.
std::pair<i64, i64> moved_and_kept(const std::string& from, const std::string& to) {
  auto had = held_in(from);
  auto bytes = element_bytes(to);
  i64 moved = 0;
  i64 kept = 0;
  for (const auto& [key, elements] : held_in(to)) {
    for (const i64 element : elements)
      (had[key].count(element) > 0 ? kept : moved) += bytes[key.first];
  }
  return {moved, kept};
}

TEST_CASE("what is planned is what is executed: bytes that move, and every byte that is written") {
  CHECK(rc::check("plan = executed", [] {
    const TempFolder folder;
    const ModelFiles model(mapping::tiny_llama({.vocab = 24}));
    const std::string from = *rc::gen::element<std::string>("tp=1", "tp=2", "tp=4", "dp=2,tp=2");
    const std::string to = *rc::gen::element<std::string>("tp=1", "tp=2", "tp=4", "tp=2,dp=3");
    const std::string parts = model.split("from", from);
    PlanOptions asked = to_mesh(parts, to);
    asked.node_size = *rc::gen::element<i64>(1, 2, 8);  // affects the choice of senders
    const PlanReport planned = make_plan(asked);
    const std::string plan = saved(folder / "plan.json", sealed(document(planned)));
    const TransformReport done = apply_plan(plan, folder / "out");
    RC_ASSERT(done.moved->bytes_moved == planned.reshard->bytes_moved);
    RC_ASSERT(done.moved->bytes_kept == planned.reshard->bytes_kept);
    RC_ASSERT(done.plan.bytes_out - done.plan.padding_bytes == planned.reshard->bytes_total);
    const auto [moved, kept] = moved_and_kept(parts, folder / "out");
    RC_ASSERT(moved == planned.reshard->bytes_moved);
    RC_ASSERT(kept == planned.reshard->bytes_kept);
    RC_ASSERT(test::folder_content(folder / "out") == test::folder_content(model.split("to", to)));
  }));
}

TEST_CASE("a plan with any byte changed is refused") {
  const TempFolder folder;
  const ModelFiles model(mapping::tiny_llama());
  const std::string text =
      sealed(document(make_plan(to_mesh(model.split("from", "tp=2"), "tp=4"))));
  CHECK(parse_plan(text, "plan.json").mesh == "tp=4");
  CHECK(rc::check("edited", [&] {
    std::string edited = text;
    char& byte = edited[static_cast<size_t>(*gen::between(0, static_cast<i64>(text.size()) - 1))];
    const char before = byte;
    byte = *rc::gen::element('0', '7', 'a', '"', '}', ' ');
    RC_PRE(byte != before);
    const auto error = testing::error_of([&] { return parse_plan(edited, "plan.json"); });
    RC_ASSERT(error.has_value());
    RC_ASSERT(error->code() == ErrorCode::kPlanInvalid);
  }));
  CHECK_ERROR(kPlanInvalid, parse_plan(text.substr(0, text.size() / 2), "plan.json"));
  CHECK_ERROR(kPlanInvalid, parse_plan("", "plan.json"));
}

TEST_CASE("a plan of another version, or a sealed document that is none, is refused") {
  const ModelFiles model(mapping::tiny_llama());
  const PlanReport report = make_plan(to_mesh(model.split("from", "tp=2"), "tp=4"));
  CHECK_ERROR(kPlanInvalid, parse_plan(sealed(document(report, "9.9.9")), "plan.json"));
  CHECK_ERROR(kPlanInvalid, parse_plan(sealed(R"({"command":"plan")"), "plan.json"));
  CHECK_ERROR(kPlanInvalid, parse_plan(sealed("not JSON"), "plan.json"));
}

TEST_CASE("a sealed plan with counts that cannot be is refused") {
  const ModelFiles model(mapping::tiny_llama());
  const PlanReport report = make_plan(to_mesh(model.split("from", "tp=2"), "tp=4"));
  for (const char* key : {"bytes_moved", "bytes_kept", "transfers_count", "node_size"}) {
    for (const json& value : {json(-1), json(1.5), json("1"), json(UINT64_MAX)}) {
      CAPTURE(key);
      CAPTURE(value.dump());
      PlanReport other = report;
      json apply = json::parse(report.recipe);
      apply[key] = value;
      other.recipe = apply.dump();
      CHECK_ERROR(kPlanInvalid, parse_plan(sealed(document(other)), "plan.json"));
    }
  }
}

TEST_CASE("a plan for parts that are others by now is refused, and nothing is written") {
  const TempFolder folder;
  const ModelFiles model(mapping::tiny_llama());
  const std::string plan = saved(
      folder / "plan.json", sealed(document(make_plan(to_mesh(model.split("a", "tp=2"), "tp=4")))));
  ReshardOptions options;
  options.plan = plan;
  options.write.output = folder / "out";
  options.sources = {model.split("b", "tp=4")};
  CHECK_ERROR(kInputChanged, reshard(options));
  options.sources.clear();
  options.ranks = {0};
  CHECK_ERROR(kUsage, reshard(options));
  CHECK(!std::ifstream(folder / "out/manifest.json").good());
}

TEST_CASE("a plan is applied to shards with the values that it was made for, and to no others") {
  const TempFolder folder;
  const ModelFiles model(mapping::tiny_llama());
  test::Tensors changed = model.whole();
  ++changed.begin()->second.bytes.back();
  const ModelFiles other(changed, mapping::tiny_llama().config);
  const PlanReport report = make_plan(to_mesh(model.split("a", "tp=2"), "tp=4"));
  ReshardOptions options;
  options.plan = saved(folder / "plan.json", sealed(document(report)));
  options.write.output = folder / "same";
  options.sources = {model.split("b", "tp=2")};
  reshard(options);
  options.write.output = folder / "other";
  options.sources = {other.split("b", "tp=2")};
  CHECK_ERROR(kInputChanged, reshard(options));
  CHECK(!std::ifstream(folder / "other/manifest.json").good());

  // Plans of earlier versions do not record values.
  json apply = json::parse(report.recipe);
  apply.erase("values_xxh3");
  PlanReport earlier = report;
  earlier.recipe = apply.dump();
  options.plan = saved(folder / "earlier.json", sealed(document(earlier)));
  reshard(options);
}

TEST_CASE("a plan whose mapping gives other parts by now is refused") {
  const TempFolder folder;
  const ModelFiles model(mapping::tiny_llama());
  const std::string parts = model.split("from", "tp=2");
  const std::string plan =
      saved(folder / "plan.json", sealed(document(make_plan(to_mesh(parts, "tp=4")))));
  std::ifstream in(parts + "/config.json");
  std::stringstream text;
  text << in.rdbuf();
  json config = json::parse(text.str());
  config["num_key_value_heads"] = 8;  // 4 devices would get two each, not copies of one
  config["head_dim"] = 2;
  config["num_attention_heads"] = 32;
  std::ofstream(parts + "/config.json") << config.dump();
  CHECK_ERROR(kPlanInvalid, apply_plan(plan, folder / "out"));
}

TEST_CASE("only a reshard from the parts as they are can be saved as a plan") {
  const ModelFiles model(mapping::tiny_llama());
  PlanOptions options = to_mesh(model.split("from", "tp=2"), "tp=4");
  options.mapping.preset = "llama";
  options.mapping.mesh = mesh::parse_mesh("tp=1");
  options.mapping_is_given = true;
  CHECK_ERROR(kUsage, make_plan(options));
  options = to_mesh(options.sources[0], "tp=4");
  options.to_mesh.reset();
  CHECK_ERROR(kUsage, make_plan(options));
}

}  // namespace
}  // namespace shardtool::api
