// A checkpoint with fused tensors is the one without them that a mapping's rules of "read" show.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "lib/api/check.h"
#include "lib/api/diff.h"
#include "lib/api/inspect.h"
#include "lib/api/transfer/sources/foreign_checkpoint.h"
#include "lib/api/transfer/sources/open_source.h"
#include "lib/api/transform.h"
#include "tests/layouts/tables.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/generators.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::layouts {
namespace {

using nlohmann::json;
using test::TempFolder;
using test::Tensors;

/// A fused matrix: in each of `groups` along `axis` its parts follow each other, with sizes in
/// proportion to `shares`.
struct Fused {
  std::vector<i64> shares;
  i64 unit = 1;  ///< a part has share * groups * unit indices
  i64 groups = 1;
  i64 axis = 0;
  i64 other = 1;  ///< extent of the other axis
  i64 tp = 1;

  i64 size(size_t part) const { return shares[part] * groups * unit; }
  Shape shape(i64 along) const { return axis == 0 ? Shape{along, other} : Shape{other, along}; }
};

Fused any_fused() {
  Fused fused;
  const i64 parts = *gen::between(2, 4);
  for (i64 part = 0; part < parts; ++part) fused.shares.push_back(*gen::between(1, 3));
  fused.unit = *gen::between(1, 3);
  fused.groups = *gen::between(1, 3);
  fused.axis = *gen::between(0, 1);
  fused.other = *gen::between(1, 4);
  fused.tp = *gen::between(1, 2);
  return fused;
}

std::string part_name(size_t part) {
  return fmt::format("part{}", part);
}

Tensors parts_of(const Fused& fused) {
  Tensors parts;
  for (size_t part = 0; part < fused.shares.size(); ++part) {
    const std::string name = part_name(part);
    parts[name] = test::numbered_tensor(name, Dtype::kI16, fused.shape(fused.size(part)));
  }
  return parts;
}

/// Fuses the parts element by element.
Tensors fuse(const Fused& fused, const Tensors& parts) {
  constexpr i64 kWidth = 2;
  i64 whole = 0;
  for (size_t part = 0; part < fused.shares.size(); ++part) whole += fused.size(part);
  test::Tensor result = test::numbered_tensor("all", Dtype::kI16, fused.shape(whole));
  i64 to = 0;
  for (i64 group = 0; group < fused.groups; ++group) {
    for (size_t part = 0; part < fused.shares.size(); ++part) {
      const test::Tensor& from = parts.at(part_name(part));
      const i64 in_group = fused.size(part) / fused.groups;
      for (i64 k = 0; k < in_group; ++k, ++to) {
        for (i64 o = 0; o < fused.other; ++o) {
          const i64 at = group * in_group + k;
          const i64 source = fused.axis == 0 ? at * fused.other + o : o * fused.size(part) + at;
          const i64 target = fused.axis == 0 ? to * fused.other + o : o * whole + to;
          std::copy_n(from.bytes.begin() + source * kWidth, kWidth,
                      result.bytes.begin() + target * kWidth);
        }
      }
    }
  }
  return {{"all", result}};
}

json mapping_of(const Fused& fused) {
  json rule = {{"name", "all"}, {"axis", fused.axis}, {"groups", fused.groups}};
  json rules = json::array();
  for (size_t part = 0; part < fused.shares.size(); ++part) {
    rule["of"].push_back(part_name(part));
    rule["shares"].push_back(fused.shares[part]);
    rules.push_back({{"match", part_name(part)},
                     {"strategy", {{"type", "axiswise"}, {"axis", fused.axis}, {"over", "tp"}}}});
  }
  return {{"version", 1},
          {"mesh", {{{"axis", "tp"}, {"size", fused.tp}}}},
          {"read", {rule}},
          {"rules", rules}};
}

}  // namespace

TEST_CASE("parts that were fused along any axis and in groups are split, merged and compared") {
  CHECK(rc::check([] {
    const Fused fused = any_fused();
    const TempFolder folder;
    const Tensors parts = parts_of(fused);
    test::write_checkpoint(folder / "fused", fuse(fused, parts));
    folder.write("mapping.json", mapping_of(fused).dump());
    api::SplitOptions split;
    split.source = folder / "fused";
    split.mapping.path = folder / "mapping.json";
    split.mapping.allow_empty_shards = true;
    split.write.output = folder / "out";
    api::split(split);
    api::MergeOptions merge;
    merge.sources = {folder / "out"};
    merge.write.output = folder / "merged";
    api::merge(merge);
    RC_ASSERT(test::rows_of(test::read_tensors(folder / "merged", "model")) ==
              test::rows_of(parts));
    api::DiffOptions diff;
    diff.a = folder / "fused";
    diff.b = folder / "out";
    RC_ASSERT(api::diff(diff).equal);
    std::swap(diff.a, diff.b);
    RC_ASSERT(api::diff(diff).equal);
    diff.a = folder / "fused";
    diff.b = folder / "merged";
    RC_ASSERT(api::diff(diff).equal);
    api::ReshardOptions reshard;
    reshard.sources = {folder / "fused"};
    reshard.to.allow_empty_shards = true;
    reshard.to_layout = folder / "mapping.json";
    reshard.write.output = folder / "to";
    api::reshard(reshard);
    diff.b = folder / "to";
    RC_ASSERT(api::diff(diff).equal);
    diff.b = folder / "merged";
    std::filesystem::remove(folder / "merged/manifest.json");
    RC_ASSERT(!api::diff(diff).equal);  // nothing says how the parts were fused
  }));
}

TEST_CASE("inspect says where a part begins, and which rule takes no tensor") {
  const TempFolder folder;
  test::write_checkpoint(folder / "fused",
                         {{"all", test::numbered_tensor("all", Dtype::kI16, {4, 3})}});
  folder.write("mapping.json", R"({"version": 1, "unknown": "replicate",
    "read": [{"name": "all", "of": ["a", "b"]}, {"name": "al", "of": ["c", "d"]}]})");
  api::InspectOptions options;
  options.source = folder / "fused";
  options.mapping.emplace().path = folder / "mapping.json";
  options.mapping->mesh = mesh::Mesh({{"tp", 1}});
  const api::InspectReport report = api::inspect(options);
  REQUIRE(report.list.size() == 2);
  CHECK(report.list[1].offset == report.list[0].offset + 2 * 3 * 2);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings.front().find("'al'") != std::string::npos);
}

TEST_CASE("fused tensors of an output are not taken apart in silence") {
  const TempFolder folder;
  test::write_checkpoint(folder / "fused",
                         {{"all", test::numbered_tensor("all", Dtype::kI16, {4})}});
  api::MergeOptions merge;
  merge.sources = {folder / "fused"};
  merge.write.output = folder / "merged";
  api::merge(merge);
  folder.write("mapping.json", R"({"version": 1, "unknown": "replicate",
    "read": [{"name": "all", "of": ["a", "b"]}]})");
  api::SplitOptions split;
  split.source = folder / "merged";
  split.mapping.path = folder / "mapping.json";
  split.mapping.mesh = mesh::Mesh({{"tp", 1}});
  split.write.output = folder / "out";
  CHECK_ERROR(kUnsupported, api::split(split));
  split.source = folder / "fused";
  CHECK_NOTHROW(api::split(split));
  split.source = folder / "out";
  split.write.output = folder / "again";
  CHECK_NOTHROW(api::split(split));
}

TEST_CASE("fused tensors of files of ranks are refused, and not said to lack a rule") {
  const TempFolder folder;
  const Tensors ranks = {{"all", test::numbered_tensor("all", Dtype::kI16, {4, 3})}};
  for (const std::string rank : {"0", "1"}) {
    test::write_checkpoint(folder / "one", ranks);
    std::filesystem::create_directories(folder / "ranks");
    std::filesystem::rename(folder / "one/model.safetensors",
                            folder / "ranks/model-rank-" + rank + "-part-0.safetensors");
  }
  const std::string mapping = R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
    "rules": [{"match": "*", "strategy": "rowwise"}])";
  api::CheckOptions options;
  options.sources = {folder / "ranks"};
  options.mapping.emplace().path = folder.write("mapping.json", mapping + "}");
  CHECK(api::check(options).errors == 0);
  folder.write("mapping.json", mapping + R"(, "read": [{"name": "all", "of": ["a", "b"]}]})");
  CHECK_ERROR(kUnsupported, api::check(options));
  test::write_checkpoint(folder / "whole",
                         {{"all", test::numbered_tensor("all", Dtype::kI16, {8, 3})}});
  const api::LogicalCheckpoint whole = api::open_logical({folder / "whole"});
  CHECK_ERROR(kUnsupported, api::place_foreign_files(*api::find_foreign_files(options.sources),
                                                     *options.mapping, whole));
}

TEST_CASE("tensors that their rule cannot take apart are refused") {
  const auto code = [](const json& rule, const Shape& shape, Dtype dtype = Dtype::kI16) {
    const TempFolder folder;
    test::write_checkpoint(folder / "fused", {{"all", test::numbered_tensor("all", dtype, shape)}});
    const json mapping = {{"version", 1}, {"read", {rule}}, {"unknown", "replicate"}};
    folder.write("mapping.json", mapping.dump());
    api::SplitOptions split;
    split.source = folder / "fused";
    split.mapping.path = folder / "mapping.json";
    split.mapping.mesh = mesh::Mesh({{"tp", 1}});
    split.write.output = folder / "out";
    const auto error = testing::error_of([&] { api::split(split); });
    return error ? std::string(error->id()) : "none";
  };
  const auto id = [](ErrorCode of) { return std::string(error_info(of).id); };
  const json halves = {{"name", "all"}, {"of", {"a", "b"}}};
  CHECK(code(halves, {4}) == "none");
  CHECK(code(halves, {3}) == id(ErrorCode::kShapeMismatch));
  CHECK(code(halves, {}) == id(ErrorCode::kShapeMismatch));
  const auto with = [](json rule, const std::string& key, const json& value) {
    rule[key] = value;
    return rule;
  };
  CHECK(code(with(halves, "axis", 1), {4}) == id(ErrorCode::kShapeMismatch));
  const i64 huge = i64{1} << 62;
  CHECK(code(with(halves, "shares", {huge, huge}), {4}) == id(ErrorCode::kSizeExpression));
  CHECK(code(with(halves, "shares", {huge, 1}), {4}) == id(ErrorCode::kShapeMismatch));
  const json heads = {{"name", "all"}, {"of", "a"}, {"interleaved", 2}};
  CHECK(code(heads, {8}) == "none");
  CHECK(code(heads, {6}) == id(ErrorCode::kShapeMismatch));
  CHECK(code(heads, {0, 2}) == "none");
  CHECK(code(heads, {}) == id(ErrorCode::kShapeMismatch));
  CHECK(code(with(heads, "interleaved", huge), {8}) == id(ErrorCode::kShapeMismatch));
  CHECK(code({{"name", "a**"}, {"of", "ab"}}, {8}) == id(ErrorCode::kTensorInvalid));
  CHECK(code({{"name", "all"}, {"of", "all"}, {"interleaved", 2}}, {8}) ==
        id(ErrorCode::kTensorInvalid));
  CHECK(code({{"name", "all"}, {"of", "__metadata__"}}, {8}) == id(ErrorCode::kTensorInvalid));
  CHECK(code(with(halves, "groups", 4), {4}) == id(ErrorCode::kShapeMismatch));
  CHECK(code(with(halves, "groups", i64{1} << 40), {i64{1} << 41, 0}) == id(ErrorCode::kLimit));
  CHECK(code({{"name", "all"}, {"of", "a"}, {"interleaved", 1}}, {i64{1} << 41, 0}) ==
        id(ErrorCode::kLimit));
  const json stack = {{"name", "all"}, {"of", "a.<n>"}, {"stacked", "n"}};
  CHECK(code(stack, {i64{1} << 41, 0}) == id(ErrorCode::kLimit));
  CHECK(code(stack, {2, 0}) == "none");
  CHECK(code(stack, {2, 2}, Dtype::kF4) == "none");
  CHECK(code(stack, {2, 3}, Dtype::kF4) == id(ErrorCode::kSubByteCut));
  CHECK(code(with(halves, "axis", 1), {1, 2}, Dtype::kF4) == id(ErrorCode::kSubByteCut));
}

}  // namespace shardtool::layouts
