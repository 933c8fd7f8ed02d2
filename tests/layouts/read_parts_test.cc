#include "lib/mapping/resolve/read_parts.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "lib/api/transfer/sources/layout_source.h"
#include "lib/layouts/engine_layout.h"
#include "lib/mapping/document/glob_matcher.h"
#include "tests/layouts/model_parts.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/generators.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

/// Checkpoints whose tensors hold several of the model's, such as Megatron's.
namespace shardtool::layouts {
namespace {

using nlohmann::json;
using test::TempFolder;

mapping::ModelConfig numbers_config(const json& numbers) {
  return mapping::parse_config(numbers.dump(), "config.json");
}

/// Parts of a stored tensor of this extent by one rule, given as JSON.
std::vector<mapping::PartPlace> parts_by(const json& rule, i64 extent,
                                         const mapping::ModelConfig* config) {
  const json document = {{"version", 1}, {"read", {rule}}};
  const mapping::Mapping mapping({{"mapping.json", document.dump()}});
  const mapping::ReadRules rules(mapping);
  const auto match = rules.find(rule.at("name").get<std::string>(), 2);
  REQUIRE(match);
  return mapping::parts_at(*match, {}, extent, config);
}

/// Rows of 4 bytes, each with its number; in the order of the groups.
std::vector<std::int32_t> grouped(const std::vector<std::vector<std::int32_t>>& parts, i64 groups) {
  std::vector<std::int32_t> rows;
  for (i64 group = 0; group < groups; ++group) {
    for (const auto& part : parts) {
      const i64 size = std::ssize(part) / groups;
      rows.insert(rows.end(), part.begin() + group * size, part.begin() + (group + 1) * size);
    }
  }
  return rows;
}

std::string bytes_of(const std::vector<std::int32_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::int32_t)};
}

/// A chunk of a stored tensor of I32.
struct StoredChunk {
  std::string tensor;
  std::vector<i64> shape;
  std::vector<i64> begin;
  std::vector<std::int32_t> values;
};

/// Writes a file as torch.distributed.checkpoint saves one to safetensors.
void write_chunk(const TempFolder& folder, const std::string& name, const StoredChunk& chunk) {
  const json info = {{chunk.tensor, {{"saved_offsets", chunk.begin}}}};
  const std::string data = bytes_of(chunk.values);
  const json header = {
      {"__metadata__", {{"DCP_SHARDING_INFO", info.dump()}}},
      {chunk.tensor,
       {{"dtype", "I32"}, {"shape", chunk.shape}, {"data_offsets", {0, data.size()}}}}};
  folder.write(name, test::safetensors_bytes(header.dump(), data));
}

/// Merges the folder by the rules of Megatron. Returns tensors by name, and warnings.
test::Tensors merged_from(const TempFolder& folder, const json& config,
                          std::vector<std::string>* warnings = nullptr) {
  folder.write("config.json", config.dump());
  const TempFolder output;
  const auto said =
      test::write_parts(api::open_in_layout({{folder.path()}, "megatron", ""}), output / "merged");
  if (warnings != nullptr) *warnings = said;
  return test::read_tensors(output / "merged", "model");
}

std::string text_of(const test::Bytes& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("the parts of grouped rows are where fusing put them") {
  CHECK(rc::check([] {
    const i64 groups = *gen::between(1, 4);
    const std::vector<i64> shares = {groups * *gen::between(1, 3), groups * *gen::between(1, 2),
                                     groups};
    const i64 unit = *gen::between(1, 3);
    const i64 rows = unit * std::accumulate(shares.begin(), shares.end(), i64{0});
    const json rule = {{"name", "qkv"},
                       {"of", {"q", "k", "v"}},
                       {"shares", {"config.a", "config.b", "config.c"}},
                       {"groups", "config.groups"}};
    const auto config =
        numbers_config({{"a", shares[0]}, {"b", shares[1]}, {"c", shares[2]}, {"groups", groups}});
    std::vector<std::vector<std::int32_t>> whole;
    std::int32_t next = 0;
    for (const i64 share : shares) {
      auto& part = whole.emplace_back(static_cast<size_t>(unit * share));
      std::iota(part.begin(), part.end(), next);
      next += static_cast<std::int32_t>(std::ssize(part));
    }
    const auto stored = grouped(whole, groups);
    const auto places = parts_by(rule, rows, &config);
    RC_ASSERT(places.size() == 3);
    for (i64 row = 0; row < rows; ++row) {
      i64 found = 0;
      for (size_t part = 0; part < 3; ++part) {
        const auto at = places[part].along(row);
        if (!at) continue;
        ++found;
        RC_ASSERT(whole[part][static_cast<size_t>(*at)] == stored[static_cast<size_t>(row)]);
      }
      RC_ASSERT(found == 1);
    }
  }));
}

TEST_CASE("interleaved rows are those of a head's halves in turn") {
  CHECK(rc::check([] {
    const i64 heads = *gen::between(1, 4);
    const i64 half = *gen::between(1, 3);
    const i64 rows = 2 * half * heads;
    const json rule = {{"name", "wq"}, {"of", {"q"}}, {"interleaved", "config.heads"}};
    const auto config = numbers_config({{"heads", heads}});
    const auto place = parts_by(rule, rows, &config).at(0);
    for (i64 row = 0; row < rows; ++row) {
      const i64 in_head = row % (2 * half);
      RC_ASSERT(place.along(row) == row - in_head + in_head % 2 * half + in_head / 2);
    }
    const auto uneven = numbers_config({{"heads", rows}});
    CHECK_ERROR(kShapeMismatch, parts_by(rule, rows, &uneven));
  }));
}

TEST_CASE("a rule of reading that cannot name or size its parts is refused") {
  const auto refused = [](const json& rule) {
    CAPTURE(rule.dump());
    const json document = {{"version", 1}, {"read", {rule}}};
    CHECK_ERROR(kMappingSchema, mapping::Mapping({{"mapping.json", document.dump()}}));
  };
  refused({{"name", "a.<layer>"}, {"of", {"b.<row>"}}});
  refused({{"name", "a"}, {"of", {"b.<layer>"}}});
  refused({{"name", "a"}, {"of", {"b"}}, {"stacked", "layer"}});
  refused({{"name", "a"}, {"of", json::array()}});
  refused({{"name", "a"}, {"of", {"b", "c"}}, {"shares", {1}}});
  refused({{"name", "a"}, {"of", {"b", "c"}}, {"size", 4}});
  refused({{"name", "a"}, {"of", {"b", "c"}}, {"interleaved", 4}});
  refused({{"name", "a"}, {"of", "b"}, {"groups", 4}});
  refused({{"name", "a"}, {"of", "b"}, {"axis", -1}});
}

TEST_CASE("heads, gates and experts of all layers are found in the chunks of two ranks") {
  const TempFolder folder;
  // 2 layers of 4 query heads and 2 key heads of one row: per group q q k v.
  const std::string qkv = "decoder.layers.self_attention.linear_qkv.weight";
  write_chunk(folder, "1.safetensors",
              {qkv, {2, 4, 1}, {0, 0, 0}, {0, 1, 20, 30, 100, 101, 120, 130}});
  write_chunk(folder, "2.safetensors",
              {qkv, {2, 4, 1}, {0, 4, 0}, {2, 3, 21, 31, 102, 103, 121, 131}});
  // 2 layers of 2 experts with 2 gate rows and 2 up rows; a rank has an expert.
  const std::string fc1 = "decoder.layers.mlp.experts.experts.linear_fc1.weight";
  write_chunk(folder, "3.safetensors",
              {fc1, {2, 1, 4, 1}, {0, 0, 0, 0}, {1, 2, 3, 4, 11, 12, 13, 14}});
  write_chunk(folder, "4.safetensors",
              {fc1, {2, 1, 4, 1}, {0, 1, 0, 0}, {5, 6, 7, 8, 15, 16, 17, 18}});
  write_chunk(folder, "5.safetensors",
              {"embedding.word_embeddings.weight", {4, 1}, {0, 0}, {7, 8, 9, 0}});
  const auto found = merged_from(folder, {{"model_type", "qwen3_moe"},
                                          {"num_attention_heads", 4},
                                          {"num_key_value_heads", 2},
                                          {"vocab_size", 3}});
  const std::map<std::string, std::vector<std::int32_t>> expected = {
      {"model.layers.0.self_attn.q_proj.weight", {0, 1, 2, 3}},
      {"model.layers.0.self_attn.k_proj.weight", {20, 21}},
      {"model.layers.0.self_attn.v_proj.weight", {30, 31}},
      {"model.layers.1.self_attn.q_proj.weight", {100, 101, 102, 103}},
      {"model.layers.1.self_attn.k_proj.weight", {120, 121}},
      {"model.layers.1.self_attn.v_proj.weight", {130, 131}},
      {"model.layers.0.mlp.experts.0.gate_proj.weight", {1, 2}},
      {"model.layers.0.mlp.experts.0.up_proj.weight", {3, 4}},
      {"model.layers.0.mlp.experts.1.gate_proj.weight", {5, 6}},
      {"model.layers.0.mlp.experts.1.up_proj.weight", {7, 8}},
      {"model.layers.1.mlp.experts.0.gate_proj.weight", {11, 12}},
      {"model.layers.1.mlp.experts.0.up_proj.weight", {13, 14}},
      {"model.layers.1.mlp.experts.1.gate_proj.weight", {15, 16}},
      {"model.layers.1.mlp.experts.1.up_proj.weight", {17, 18}},
      {"model.embed_tokens.weight", {7, 8, 9}},
  };
  CHECK(found.size() == expected.size());
  for (const auto& [name, values] : expected) {
    CAPTURE(name);
    REQUIRE(found.contains(name));
    CHECK(text_of(found.at(name).bytes) == bytes_of(values));
  }
}

TEST_CASE("the state of the optimizer is left out and named") {
  const TempFolder folder;
  const std::string state = "optimizer.state.exp_avg.decoder.final_layernorm.weight";
  write_chunk(folder, "1.safetensors", {"decoder.final_layernorm.weight", {2}, {0}, {1, 2}});
  write_chunk(folder, "2.safetensors", {state, {2}, {0}, {3, 4}});
  std::vector<std::string> warnings;
  const auto found = merged_from(folder, {{"model_type", "llama"}}, &warnings);
  CHECK(found.size() == 1);
  CHECK(found.contains("model.norm.weight"));
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find(state) != std::string::npos);
}

TEST_CASE("tensors that no rule takes, other sizes and writing are refused") {
  const json config = {{"model_type", "llama"},
                       {"num_attention_heads", 2},
                       {"num_key_value_heads", 2},
                       {"vocab_size", 9}};
  const auto code = [&](const std::string& name, const std::vector<i64>& shape) {
    const TempFolder folder;
    std::vector<std::int32_t> values(static_cast<size_t>(element_count(shape).value()));
    write_chunk(folder, "1.safetensors", {name, shape, std::vector<i64>(shape.size(), 0), values});
    const auto error = testing::error_of([&] { return merged_from(folder, config); });
    REQUIRE(error);
    return error->code();
  };
  CHECK(code("decoder.layers.self_attention.other.weight", {2, 6}) == ErrorCode::kNoRule);
  CHECK(code("decoder.layers.self_attention.linear_qkv.weight", {2, 7, 1}) ==
        ErrorCode::kShapeMismatch);
  CHECK(code("embedding.word_embeddings.weight", {8, 1}) == ErrorCode::kShapeMismatch);
  CHECK_ERROR(kUnsupported, names_for(find_layout("megatron"), mesh::parse_mesh("tp=2")));
  const auto other = numbers_config({{"model_type", "gpt2"}});
  CHECK_ERROR(kUnsupported, documents_for(find_layout("megatron"), &other));
}

TEST_CASE("a number that config.json lacks is asked for") {
  const json rule = {{"name", "a"}, {"of", {"q", "k"}}, {"groups", "config.num_query_groups"}};
  CHECK_ERROR(kConfig, parts_by(rule, 8, nullptr));
  const auto config = numbers_config({{"hidden_size", 8}});
  CHECK_ERROR(kSizeExpression, parts_by(rule, 8, &config));
  const json of_axis = {{"name", "a"}, {"of", {"q", "k"}}, {"groups", "axes.heads"}};
  CHECK_ERROR(kSizeExpression, parts_by(of_axis, 8, &config));
}

}  // namespace shardtool::layouts
