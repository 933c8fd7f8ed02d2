// Weights that are stored cut along an axis of role "fsdp" are gathered before a layer computes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "lib/api/plan.h"
#include "lib/api/transform.h"
#include "lib/api/validate.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

const std::string kLlama = SHARDTOOL_SOURCE_DIR "/samples/tiny-llama";
const std::string kParamAndCompute = SHARDTOOL_SOURCE_DIR "/samples/mappings/llama-fsdp4-tp2.json";
/// Replicas of FSDP: hybrid sharding.
constexpr const char* kHybrid = R"({"version": 1, "extends": ["preset:llama"],
  "mesh": [{"axis": "dp", "size": 2}, {"axis": "fsdp", "size": 2, "role": "fsdp"},
           {"axis": "tp", "size": 2}],
  "axes": {"embed": "fsdp"}})";

struct FsdpShards {
  test::TempFolder folder;
  std::string parts = folder / "parts";

  explicit FsdpShards(const MappingChoice& mapping) {
    SplitOptions options;
    options.source = kLlama;
    options.mapping = mapping;
    options.write.output = parts;
    split(options);
  }
  ValidateReport validated(const std::string& reference = "") const {
    ValidateOptions options;
    options.sources = {parts};
    options.reference = reference;
    options.quick = true;
    return validate(options);
  }
  std::string file_of(i64 rank) const {
    return parts + "/model-rank-" + std::to_string(rank) + "-part-0.safetensors";
  }
  void flip_last_byte(const std::string& file) const { test::flip_bits(parts + "/" + file, -1); }
  /// Changes one bit of the data in a rank's file.
  void flip_any_bit(i64 rank, std::mt19937& random) const {
    const std::string path = file_of(rank);
    std::ifstream in(path, std::ios::binary);
    std::uint64_t header = 0;
    in.read(reinterpret_cast<char*>(&header), sizeof header);
    const auto data = static_cast<i64>(std::filesystem::file_size(path) - sizeof header - header);
    const i64 from_end = std::uniform_int_distribution<i64>(1, data)(random);
    test::flip_bits(path, -from_end, 1 << std::uniform_int_distribution<int>(0, 7)(random));
  }
};

/// Exchanges the data of layers 0 and 1 in a safetensors file.
void exchange_layers(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const size_t data = sizeof length + length;
  const auto header = nlohmann::json::parse(bytes.substr(sizeof length, length));
  for (const auto& [name, entry] : header.items()) {
    const size_t at = name.find("layers.0.");
    if (at == name.npos) continue;
    std::string other = name;
    other[at + std::string_view("layers.").size()] = '1';
    const auto own = entry.at("data_offsets").get<std::vector<size_t>>();
    const auto there = header.at(other).at("data_offsets").get<std::vector<size_t>>();
    REQUIRE(own[1] - own[0] == there[1] - there[0]);
    char* const begin = bytes.data() + data;
    std::swap_ranges(begin + own[0], begin + own[1], begin + there[0]);
  }
  std::ofstream(path, std::ios::binary) << bytes;
}

MappingChoice param_over(const std::string& mesh) {
  MappingChoice choice;
  choice.path = kParamAndCompute;
  choice.layout = "param";
  choice.mesh = mesh::parse_mesh(mesh);
  return choice;
}

/// The preset's cuts over tp, and parameters over fsdp; other axes have replicas.
MappingChoice gathered_over(const std::string& mesh) {
  MappingChoice choice;
  choice.preset = "llama";
  choice.mesh = mesh::parse_mesh(mesh);
  choice.settings = {{"axes.embed", "fsdp"}, {"axes.embed.uneven", "chunk"}};
  return choice;
}

/// Returns a mesh of up to three axes in any order.
std::string any_mesh(std::mt19937& random) {
  const auto up_to = [&](int n) {
    return std::to_string(std::uniform_int_distribution<int>(1, n)(random));
  };
  std::vector<std::string> axes{"dp=" + up_to(2), "fsdp=" + up_to(5), "tp=" + up_to(2)};
  std::ranges::shuffle(axes, random);
  return axes[0] + "," + axes[1] + "," + axes[2];
}

PlanOptions plan_over(const MappingChoice& mapping, i64 batch) {
  PlanOptions options;
  options.sources = {kLlama};
  options.mapping = mapping;
  options.mapping_is_given = true;
  options.workload.batch = batch;
  options.workload.prompt_len = 8;
  return options;
}

/// Number of calls along axes whose name has this word, by operation.
std::map<plan::CollectiveOp, i64> calls_along(const std::vector<model::CommRow>& rows,
                                              const std::string& axis) {
  std::map<plan::CollectiveOp, i64> calls;
  for (const model::CommRow& row : rows) {
    if (row.axis.find(axis) != row.axis.npos) calls[row.collective.op] += row.count;
  }
  return calls;
}

TEST_CASE("shards of FSDP validate, alone and against the whole model") {
  for (const char* mesh : {"fsdp=2,tp=2", "fsdp=4,tp=1", "fsdp=3,tp=2", "fsdp=1,tp=2"}) {
    CAPTURE(mesh);
    const FsdpShards shards(param_over(mesh));
    const ValidateReport alone = shards.validated();
    CHECK(alone.passes());
    CHECK(alone.coverage == 100);
    CHECK(shards.validated(kLlama).passes());
  }
}

TEST_CASE("one wrong bit of any rank's shard of FSDP fails, also where it has a replica") {
  const test::TempFolder folder;
  MappingChoice hybrid;
  hybrid.path = folder.write("hybrid.json", kHybrid);
  const FsdpShards shards(hybrid);
  CHECK(shards.validated(kLlama).passes());
  for (const char* rank : {"0", "3", "6"}) {
    CAPTURE(rank);
    const std::string file = "model-rank-" + std::string(rank) + "-part-0.safetensors";
    shards.flip_last_byte(file);
    CHECK_FALSE(shards.validated().passes());
    CHECK_FALSE(shards.validated(kLlama).passes());
    shards.flip_last_byte(file);
  }
  CHECK(shards.validated(kLlama).passes());
}

TEST_CASE("a wrong number is named for the rank whose file has it, and counted once") {
  const FsdpShards shards(param_over("fsdp=4,tp=2"));
  const auto same = shards.validated(kLlama);
  REQUIRE(same.passes());
  shards.flip_last_byte("model-rank-5-part-0.safetensors");
  const ValidateReport report = shards.validated(kLlama);
  CHECK_FALSE(report.passes());
  REQUIRE(report.bytes);
  CHECK(report.bytes->parts == same.bytes->parts);
  REQUIRE(report.bytes->different.size() == 1);
  CHECK(report.bytes->different[0].rank == 5);
  REQUIRE_FALSE(report.faults.empty());
  const engine::Fault& fault = report.faults.front();
  CHECK(fault.rank == 5);
  CHECK(fault.tensor == report.bytes->different[0].tensor);
  CHECK(fault.diagnosis.find(": rank 5 element [") != std::string::npos);
  CHECK(fault.diagnosis.find("rank 1") == std::string::npos);
}

TEST_CASE("gathered shards compute what uncut ones compute, and a wrong bit names its rank") {
  const ValidateReport uncut = FsdpShards(gathered_over("fsdp=1,tp=1")).validated(kLlama);
  REQUIRE(uncut.passes());
  constexpr std::uint32_t kCases = 16;
  for (std::uint32_t seed = 0; seed < kCases; ++seed) {
    std::mt19937 random(seed);
    const std::string mesh = any_mesh(random);
    CAPTURE(mesh);
    const FsdpShards shards(gathered_over(mesh));
    const ValidateReport sound = shards.validated(kLlama);
    CHECK(sound.passes());
    CHECK(sound.digest == uncut.digest);
    CHECK(sound.coverage == uncut.coverage);
    CHECK(shards.validated().passes());
    const i64 rank = std::uniform_int_distribution<i64>(0, sound.ranks - 1)(random);
    CAPTURE(rank);
    shards.flip_any_bit(rank, random);
    CHECK_FALSE(shards.validated().passes());
    const ValidateReport wrong = shards.validated(kLlama);
    CHECK_FALSE(wrong.passes());
    REQUIRE(wrong.bytes);
    REQUIRE(wrong.bytes->different.size() == 1);
    CHECK(wrong.bytes->different[0].rank == rank);
    REQUIRE_FALSE(wrong.faults.empty());
    CHECK(wrong.faults.front().rank == rank);
    CHECK(wrong.faults.front().tensor == wrong.bytes->different[0].tensor);
  }
}

TEST_CASE("ranks that gather a matrix from the same shards read it once, replicas read their own") {
  const auto bytes_over = [](const std::string& mesh) {
    const ValidateReport report = FsdpShards(gathered_over(mesh)).validated(kLlama);
    CHECK(report.passes());
    return report.bytes_read;
  };
  for (const std::string others : {"", ",tp=2", ",dp=2", ",dp=2,tp=2"}) {
    CAPTURE(others);
    const i64 uncut = bytes_over("fsdp=1" + others);
    for (const std::string fsdp : {"2", "3", "5"}) {
      CAPTURE(fsdp);
      CHECK(bytes_over("fsdp=" + fsdp + others) == uncut);
    }
  }
}

TEST_CASE("a rank of FSDP that holds another layer is named") {
  const FsdpShards shards(param_over("fsdp=4,tp=2"));
  exchange_layers(shards.parts + "/model-rank-5-part-0.safetensors");
  const ValidateReport report = shards.validated(kLlama);
  CHECK_FALSE(report.passes());
  REQUIRE_FALSE(report.faults.empty());
  CHECK(report.faults.front().diagnosis == "rank 5 holds layer 1 where layer 0 is to be");
}

TEST_CASE("an axis of the command line has the role fsdp if that is its name") {
  const test::TempFolder folder;
  MappingChoice choice;
  choice.preset = "llama";
  const auto cut_over = [&](const std::string& axis) {
    choice.axis_mapping =
        folder.write("axes.json", R"({"embed": ")" + axis +
                                      R"(", "heads": null, "kv_heads": null, "mlp": null,
                                          "vocab": null})");
    choice.mesh = mesh::parse_mesh(axis + "=2");
    return choice;
  };
  const FsdpShards shards(cut_over("fsdp"));
  CHECK(shards.validated().passes());
  CHECK(shards.validated(kLlama).passes());
  const PlanReport plan = make_plan(plan_over(choice, 2));
  REQUIRE(plan.cost);
  REQUIRE(plan.cost->price);
  CHECK(
      calls_along(plan.cost->price->prefill.comm, "fsdp").contains(plan::CollectiveOp::kAllGather));
  const FsdpShards others(cut_over("data"));
  const auto error = testing::error_of([&] { return others.validated(kLlama); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUnsupported);
  REQUIRE(error->help_lines().size() == 1);
  CHECK(error->help_lines()[0].find("fsdp") != std::string::npos);
}

TEST_CASE("a forward pass gathers each layer's weights, as many bytes as the layout move") {
  const auto mapping = param_over("fsdp=4,tp=2");
  const PlanReport priced = make_plan(plan_over(mapping, 4));
  REQUIRE(priced.cost);
  REQUIRE(priced.cost->price);
  PlanOptions move = plan_over(mapping, 4);
  move.from = "param";
  move.to = "compute";
  const i64 moved = make_plan(move).reshard->bytes_moved;
  for (const auto& rows : {priced.cost->price->prefill.comm, priced.cost->price->decode.comm}) {
    CHECK(calls_along(rows, "fsdp") ==
          std::map<plan::CollectiveOp, i64>{{plan::CollectiveOp::kAllGather, 4}});
    i64 received = 0;
    for (const model::CommRow& row : rows) {
      if (row.axis == "fsdp") received += row.count * row.wire_bytes_per_rank;
    }
    CHECK(received * 8 == moved);
  }
}

TEST_CASE(
    "parts that do not lie inside the computed ones are gathered over all axes that cut them") {
  const test::TempFolder folder;
  const auto axes_of_gathers = [&](const std::string& cut) {
    MappingChoice choice;
    choice.path = folder.write("mapping.json", R"({"version": 1, "extends": ["preset:llama"],
      "mesh": [{"axis": "fsdp", "size": 2, "role": "fsdp"}, {"axis": "tp", "size": 2}],
      "axes": {"heads": null, "kv_heads": null, "vocab": null, "mlp": )" +
                                                   cut + "}}");
    const PlanReport report = make_plan(plan_over(choice, 2));
    REQUIRE(report.cost);
    REQUIRE(report.cost->price);
    std::set<std::string> axes;
    for (const model::CommRow& row : report.cost->price->prefill.comm) {
      if (row.collective.op == plan::CollectiveOp::kAllGather) axes.insert(row.axis);
    }
    return axes;
  };
  CHECK(axes_of_gathers(R"(["tp", "fsdp"])") == std::set<std::string>{"fsdp"});
  CHECK(axes_of_gathers(R"(["fsdp", "tp"])") == std::set<std::string>{"fsdp*tp"});
}

TEST_CASE("beside the gathers, a device's share of the batch costs as much as without FSDP") {
  const PlanReport fsdp = make_plan(plan_over(param_over("fsdp=4,tp=2"), 4));
  MappingChoice computed = param_over("fsdp=1,tp=2");
  computed.layout = "compute";
  const PlanReport alone = make_plan(plan_over(computed, 1));
  REQUIRE(fsdp.cost->price);
  REQUIRE(alone.cost->price);
  const auto rest = [](std::vector<model::CommRow> rows) {
    std::erase_if(rows, [](const auto& row) { return row.axis == "fsdp"; });
    std::vector<std::pair<i64, i64>> calls;
    for (const auto& row : rows) calls.emplace_back(row.count, row.collective.payload_bytes);
    return calls;
  };
  CHECK(rest(fsdp.cost->price->prefill.comm) == rest(alone.cost->price->prefill.comm));
  CHECK(fsdp.cost->price->prefill.amounts.all_flops() ==
        alone.cost->price->prefill.amounts.all_flops());
  CHECK(fsdp.memory.devices[0].kv == alone.memory.devices[0].kv);
}

TEST_CASE("training gathers twice, scatters gradients, and stores what ZeRO 3 does") {
  PlanOptions fsdp = plan_over(param_over("fsdp=4,tp=1"), 1);
  fsdp.training = TrainingPlan{};
  const PlanReport trained = make_plan(fsdp);
  CHECK(calls_along(trained.training_comm, "fsdp") ==
        std::map<plan::CollectiveOp, i64>{{plan::CollectiveOp::kAllGather, 8},
                                          {plan::CollectiveOp::kReduceScatter, 4}});
  PlanOptions zero = plan_over(param_over("fsdp=1,tp=1"), 1);
  zero.training = TrainingPlan{};
  zero.training->zero_stage = 3;
  zero.training->data_parallel = 4;
  const PlanReport by_stage = make_plan(zero);
  CHECK(calls_along(by_stage.training_comm, "dp") == calls_along(trained.training_comm, "fsdp"));
  const PlanDevice& device = trained.memory.devices[0];
  CHECK(device.training == by_stage.memory.devices[0].training);
  CHECK(device.gathered > 0);
  CHECK(device.gathered == by_stage.memory.devices[0].gathered);
  CHECK(device.total == by_stage.memory.devices[0].total);
}

}  // namespace
}  // namespace shardtool::api
