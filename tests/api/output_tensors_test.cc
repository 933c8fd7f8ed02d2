#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "lib/api/check.h"
#include "lib/api/transform.h"
#include "lib/store/local/file.h"
#include "tests/api/model_files.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::TempFolder;
using test::Tensors;

/// Tensors of a file that are stored together, in the order of their bytes.
struct Fused {
  std::string name;
  std::vector<std::vector<std::string>> stacked;  ///< one element for a concatenation
  bool is_stack = false;
};

struct FusedModel {
  Tensors tensors;
  std::vector<Fused> fused;
  nlohmann::json rules = nlohmann::json::array();
  nlohmann::json store = nlohmann::json::array();
};

/// Adds a tensor and a rule that cuts it along `axis` (-1: not at all).
void add(FusedModel& model, const std::string& name, Dtype dtype, const Shape& shape, i64 axis) {
  model.tensors[name] = test::numbered_tensor(name, dtype, shape);
  const nlohmann::json cut = {{"type", "axiswise"}, {"axis", axis}};
  model.rules.push_back(
      {{"match", name}, {"strategy", axis < 0 ? nlohmann::json("replicate") : cut}});
}

/// Adds tensors that become one: `stacks` groups of `parts` tensors.
void add_group(FusedModel& model, i64 number, bool is_stack) {
  const i64 stacks = is_stack ? *gen::between(1, 4) : 1;
  const i64 parts = *gen::between(1, 3);
  const Dtype dtype = *rc::gen::element(Dtype::kBool, Dtype::kU16, Dtype::kI64);
  const Shape inner = *gen::shape();
  const i64 axis = *gen::between(-1, std::ssize(inner));
  std::vector<i64> rows;
  for (i64 p = 0; p < parts; ++p) rows.push_back(*gen::between(0, 6));
  Fused fused{fmt::format("g{}.fused", number), {}, is_stack};
  auto of = nlohmann::json::array();
  for (i64 p = 0; p < parts; ++p) {
    of.push_back(fmt::format("g{}.{}p{}", number, is_stack ? "<e>." : "", p));
  }
  // Numbers of two digits sort unlike their texts.
  for (i64 s = 0; s < stacks; ++s) {
    auto& names = fused.stacked.emplace_back();
    for (i64 p = 0; p < parts; ++p) {
      Shape shape{rows[static_cast<size_t>(p)]};
      shape.insert(shape.end(), inner.begin(), inner.end());
      names.push_back(
          fmt::format("g{}.{}p{}", number, is_stack ? fmt::format("{}.", 8 + s) : "", p));
      add(model, names.back(), dtype, shape, axis);
    }
  }
  nlohmann::json rule = {{"name", fused.name}, {"of", of}};
  if (is_stack) rule["stack"] = "e";
  model.store.push_back(rule);
  model.fused.push_back(std::move(fused));
}

FusedModel random_fused_model() {
  FusedModel model;
  add(model, "alone", Dtype::kF32, {5, 3}, *gen::between(-1, 1));
  for (i64 g = *gen::between(1, 4); g-- > 0;) add_group(model, g, *rc::gen::arbitrary<bool>());
  if (*rc::gen::arbitrary<bool>()) {
    model.store.push_back({{"name", "one"},
                           {"of", "alone"},
                           {"constant", {{"dtype", "F32"}, {"shape", {2}}, {"value", 1.5}}}});
  }
  return model;
}

SplitOptions options_for(const TempFolder& folder, const FusedModel& model, i64 devices,
                         const std::string& output, bool is_fused) {
  nlohmann::json mapping = {
      {"version", 1}, {"mesh", {{{"axis", "tp"}, {"size", devices}}}}, {"rules", model.rules}};
  if (is_fused) mapping["store"] = model.store;
  SplitOptions options;
  options.source = folder / "whole";
  options.mapping.path = folder.write(output + ".json", mapping.dump());
  options.mapping.allow_empty_shards = true;
  options.write.output = folder / output;
  return options;
}

Tensors tensors_of_rank(const std::string& folder, i64 rank) {
  return test::read_tensors(folder, fmt::format("model-rank-{}-part-0.safetensors", rank));
}

/// Merges the folder's "fused" and returns the tensors.
Tensors merged_back(const TempFolder& folder) {
  MergeOptions options;
  options.sources = {folder / "fused"};
  options.write.output = folder / "merged";
  merge(options);
  return test::read_tensors(folder / "merged", "model.safetensors");
}

/// Bytes and shape of a fused tensor, made of a rank's plain shards.
test::Tensor fuse(const Fused& fused, Tensors& shards) {
  test::Tensor whole;
  i64 stacks = 0;
  for (const auto& names : fused.stacked) {
    Shape joined;
    for (const std::string& name : names) {
      const test::Tensor& shard = shards.at(name);
      whole.bytes.insert(whole.bytes.end(), shard.bytes.begin(), shard.bytes.end());
      const i64 before = joined.empty() ? 0 : joined.front();
      joined = shard.spec.shape;
      joined.front() += before;
      whole.spec.dtype = shard.spec.dtype;
    }
    whole.spec.shape = joined;
    ++stacks;
  }
  if (fused.is_stack) whole.spec.shape.insert(whole.spec.shape.begin(), stacks);
  for (const auto& names : fused.stacked) {
    for (const std::string& name : names) shards.erase(name);
  }
  whole.spec.name = fused.name;
  return whole;
}

}  // namespace

TEST_CASE("fused tensors are the shards of their parts end to end, and come apart again") {
  CHECK(rc::check("store", [] {
    const TempFolder folder;
    const FusedModel model = random_fused_model();
    const i64 devices = *gen::between(1, 4);
    test::write_checkpoint(folder / "whole", model.tensors);
    split(options_for(folder, model, devices, "plain", false));
    split(options_for(folder, model, devices, "fused", true));
    for (i64 rank = 0; rank < devices; ++rank) {
      Tensors expected = tensors_of_rank(folder / "plain", rank);
      for (const Fused& fused : model.fused) {
        const test::Tensor whole = fuse(fused, expected);
        expected[fused.name] = whole;
      }
      Tensors found = tensors_of_rank(folder / "fused", rank);
      if (const auto constant = found.find("one"); constant != found.end()) {
        const std::vector<float> values{1.5F, 1.5F};
        RC_ASSERT(constant->second.bytes.size() == sizeof(float) * values.size());
        RC_ASSERT(std::memcmp(constant->second.bytes.data(), values.data(), 8) == 0);
        found.erase(constant);
      }
      RC_ASSERT(test::same_tensors(found, expected));
    }
    RC_ASSERT(test::same_tensors(merged_back(folder), model.tensors));
    CheckOptions checked;
    checked.sources = {folder / "fused"};
    checked.data.emplace();
    RC_ASSERT(check(checked).errors == 0);
    ReshardOptions back;
    back.sources = {folder / "fused"};
    back.to = options_for(folder, model, devices, "back", false).mapping;
    back.write.output = folder / "back";
    reshard(back);
    for (i64 rank = 0; rank < devices; ++rank) {
      RC_ASSERT(test::same_tensors(tensors_of_rank(folder / "back", rank),
                                   tensors_of_rank(folder / "plain", rank)));
    }
  }));
}

namespace {

template <class Action>
std::string message_of(Action action) {
  const auto error = testing::error_of(action);
  return error ? error->message() : "no error";
}

/// Two tensors of 4 rows that are stored as "fused", and a constant "one" beside them.
FusedModel fused_model() {
  FusedModel model;
  add(model, "a", Dtype::kU16, {4, 3}, 0);
  add(model, "b", Dtype::kU16, {4, 3}, 0);
  model.store = {{{"name", "fused"}, {"of", {"a", "b"}}},
                 {{"name", "one"}, {"of", "a"}, {"constant", {{"dtype", "F32"}, {"value", 1}}}}};
  return model;
}

void split_fused(const TempFolder& folder, const FusedModel& model) {
  test::write_checkpoint(folder / "whole", model.tensors);
  split(options_for(folder, model, 2, "fused", true));
}

std::string first_finding(const TempFolder& folder) {
  CheckOptions options;
  options.sources = {folder / "fused"};
  options.data.emplace();
  const CheckReport report = check(options);
  return report.errors == 0 ? "none" : report.findings.front().tensor;
}

/// Replaces the byte at `at` before the end of rank 1's file.
void damage(const TempFolder& folder, i64 at) {
  const std::string name = "fused/model-rank-1-part-0.safetensors";
  std::string content = store::read_text(folder / name, 1 << 20);
  content[content.size() - static_cast<size_t>(at)] ^= 1;
  folder.write(name, content);
}

/// Error of a split with other entries in "store".
std::string refusal(const nlohmann::json& store) {
  const TempFolder folder;
  FusedModel model = fused_model();
  model.store = store;
  test::write_checkpoint(folder / "whole", model.tensors);
  return message_of([&] { split(options_for(folder, model, 2, "fused", true)); });
}

}  // namespace

TEST_CASE("damage to a part or to a constant of a fused file is found") {
  for (const auto& [at, tensor] : {std::pair<i64, std::string>{1, "one"}, {5, "b"}, {17, "a"}}) {
    const TempFolder folder;
    split_fused(folder, fused_model());
    CHECK(first_finding(folder) == "none");
    damage(folder, at);
    CHECK(first_finding(folder) == tensor);
  }
}

TEST_CASE("a manifest whose parts do not fill a tensor of the file is refused") {
  const TempFolder folder;
  split_fused(folder, fused_model());
  const std::string manifest = store::read_text(folder / "fused/manifest.json", 1 << 20);
  const auto opened = [&](const std::string& from, const std::string& to) {
    std::string changed = manifest;
    const size_t at = changed.find(from);
    REQUIRE(at != changed.npos);
    folder.write("fused/manifest.json", changed.replace(at, from.size(), to));
    MergeOptions options;
    options.sources = {folder / "fused"};
    options.write.output = folder / "merged";
    options.write.dry_run = true;
    return message_of([&] { merge(options); });
  };
  CHECK(opened(R"("stored":"fused")", R"("stored":"other")") ==
        "a file lacks a tensor that the manifest records");
  CHECK(opened(R"("offset":4096)", R"("offset":4108)") ==
        "the shards that the manifest records do not fill a tensor of the file");
  CHECK(opened(R"("name":"one")", R"("name":"two")") ==
        "a file holds a tensor that the manifest does not record");
  CHECK(opened(R"("dtype":"F32")", R"("dtype":"I32")") == "a constant is not valid");
}

TEST_CASE("a changed name of a tensor that a fused tensor holds is found") {
  const TempFolder folder;
  split_fused(folder, fused_model());
  const std::string manifest = store::read_text(folder / "fused/manifest.json", 1 << 20);
  const auto json = nlohmann::json::parse(manifest);
  int renamed = 0;
  for (const auto& [name, record] : json.at("tensors").items()) {
    if (!record.contains("stored")) continue;
    CAPTURE(name);
    std::string changed = manifest;
    const std::string key = "\n\"" + name + "\":";
    const size_t at = changed.find(key);
    REQUIRE(at != changed.npos);
    changed[at + key.size() - 3] ^= 1;
    folder.write("fused/manifest.json", changed);
    CHECK(first_finding(folder) == std::string(1, changed[at + key.size() - 3]));
    MergeOptions options;
    options.sources = {folder / "fused"};
    options.write.output = folder / "merged";
    CHECK_ERROR(kManifestInvalid, merge(options));
    ++renamed;
  }
  CHECK(renamed == 2);
}

TEST_CASE("parts that are cut differently are refused") {
  const TempFolder folder;
  FusedModel model = fused_model();
  model.rules.clear();
  add(model, "a", Dtype::kU16, {4, 3}, 1);
  add(model, "b", Dtype::kU16, {4, 3}, 0);
  test::write_checkpoint(folder / "whole", model.tensors);
  CHECK(message_of([&] { split(options_for(folder, model, 2, "fused", true)); }) ==
        "the tensors of an output tensor are cut differently on rank 0");
}

TEST_CASE("a rule of \"store\" that does not fit is refused") {
  CHECK(refusal({{{"name", "x"}, {"of", {"a", "c"}}}}) ==
        "'a' is to be stored together with 'c', which is not there");
  CHECK(refusal({{{"name", "x"}, {"of", {"c", "b"}}}}) ==
        "'b' is to be stored together with 'c', which is not there");
  CHECK(refusal({{{"name", "x"}, {"of", {"a", "b"}}, {"config", {{"tie", {true}}}}}}) ==
        "no error");
  CHECK(refusal({{{"name", "b"}, {"of", "a"}}}) == "two tensors of the output would have one name");
  CHECK(refusal({{{"name", "*"}, {"of", "a"}}}) == "the wildcards of '*' and 'a' differ");
  CHECK(refusal({{{"name", "x"}, {"of", {"a", "*"}}}}) == "the wildcards of 'a' and '*' differ");
  CHECK(refusal({{{"name", "x"}, {"of", "a"}, {"join", 3}}}) ==
        "\"join\" names more axes than the tensor has");
  CHECK(refusal({{{"name", "x"}, {"of", "a"}, {"stack", "e"}}}) ==
        "\"stack\" names <e>, which \"of\" lacks");
}

TEST_CASE("a tensor of the files may have the name of one that it is made of") {
  const TempFolder folder;
  FusedModel model;
  add(model, "a", Dtype::kU16, {4, 3}, -1);
  add(model, "b", Dtype::kU16, {2, 3}, -1);
  add(model, "scale", Dtype::kF32, {}, -1);
  model.store = {{{"name", "a"}, {"of", {"a", "b"}}},
                 {{"name", "scale"}, {"of", "scale"}, {"join", 1}}};
  split_fused(folder, model);
  const Tensors found = tensors_of_rank(folder / "fused", 1);
  CHECK(found.at("a").spec.shape == Shape{6, 3});
  CHECK(found.at("scale").spec.shape == Shape{1});
  CHECK(first_finding(folder) == "none");
  CHECK(test::same_tensors(merged_back(folder), model.tensors));
}

TEST_CASE("the last axes may be one in the files, and a scalar a vector") {
  const TempFolder folder;
  FusedModel model;
  add(model, "blocks", Dtype::kU16, {2, 4, 3, 2}, 1);
  add(model, "scale", Dtype::kF32, {}, -1);
  model.store = {{{"name", "packed"}, {"of", "blocks"}, {"join", 3}},
                 {{"name", "vector"}, {"of", "scale"}, {"join", 1}}};
  split_fused(folder, model);
  const Tensors found = tensors_of_rank(folder / "fused", 1);
  CHECK(found.at("packed").spec.shape == Shape{2, 12});
  CHECK(found.at("vector").spec.shape == Shape{1});
  CHECK(first_finding(folder) == "none");
  CHECK(test::same_tensors(merged_back(folder), model.tensors));
}

}  // namespace shardtool::api
