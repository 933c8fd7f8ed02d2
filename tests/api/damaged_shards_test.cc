#include <doctest/doctest.h>

#include <filesystem>

#include "lib/api/check.h"
#include "lib/api/diff.h"
#include "lib/api/transform.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::TempFolder;

constexpr const char* kTwoParts = R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
  "rules": [{"match": "w", "strategy": "rowwise"}, {"match": "n", "strategy": "replicate"}]})";

/// A checkpoint with a cut and a replicated tensor, and its split into two ranks.
struct SplitModel {
  TempFolder folder;
  SplitModel() {
    test::Tensors tensors;
    tensors["w"] = test::numbered_tensor("w", Dtype::kU8, {64, 4});
    tensors["n"] = test::numbered_tensor("n", Dtype::kU8, {32});
    test::write_checkpoint(folder / "whole", tensors);
    SplitOptions options;
    options.source = folder / "whole";
    options.mapping.path = folder.write("mapping.json", kTwoParts);
    options.write.output = folder / "parts";
    split(options);
  }
  /// Flips one bit of a shard, `from_end` bytes before the end of the rank's file.
  void damage(int rank, i64 from_end) const {
    const std::string path =
        folder / ("parts/model-rank-" + std::to_string(rank) + "-part-0.safetensors");
    test::flip_bits(path, -from_end);
  }
  MergeOptions merge_options() const {
    MergeOptions options;
    options.sources = {folder / "parts"};
    options.write.output = folder / "merged";
    return options;
  }
};

// A rank's file has the tensors n (32 bytes) and w (128 bytes), in name order.
constexpr i64 kInW = 1;
constexpr i64 kInN = 128 + 1;

TEST_CASE("one flipped bit in a shard is found by merge, which publishes nothing") {
  const SplitModel fixture;
  fixture.damage(1, kInW);
  CHECK_ERROR(kDataMismatch, merge(fixture.merge_options()));
  CHECK_FALSE(std::filesystem::exists(fixture.folder / "merged"));
}

TEST_CASE("a replica that differs is found and named with its rank and its first byte") {
  const SplitModel fixture;
  fixture.damage(1, kInN);
  const auto error = testing::error_of([&] { return merge(fixture.merge_options()); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kDataMismatch);
  CHECK(error->tensor_name() == "n");
  CHECK(error->message() == "replicas differ: rank 1 has other bytes");
  CHECK(error->notes().front().second == "byte 31 of the whole tensor");
}

TEST_CASE("diff finds a damaged copy on either side") {
  const SplitModel fixture;
  fixture.damage(1, kInN);
  DiffOptions options;
  for (const bool is_first : {true, false}) {
    CAPTURE(is_first);
    options.a = fixture.folder / (is_first ? "parts" : "whole");
    options.b = fixture.folder / (is_first ? "whole" : "parts");
    const DiffReport report = diff(options);
    CHECK_FALSE(report.equal);
    CHECK(report.identical == 1);
    REQUIRE(report.changed.size() == 1);
    CHECK(report.changed[0].name == "n");
    CHECK(report.changed[0].first_difference == 31);
    CHECK(report.changed[0].bytes_differing == 1);
  }
}

TEST_CASE("diff refuses a model of which some ranks are missing, on either side") {
  const SplitModel fixture;
  SplitOptions split_options;
  split_options.source = fixture.folder / "whole";
  split_options.mapping.path = fixture.folder / "mapping.json";
  split_options.write.output = fixture.folder / "half";
  split_options.ranks = {0};
  split(split_options);
  DiffOptions options;
  for (const bool is_first : {true, false}) {
    options.a = fixture.folder / (is_first ? "half" : "whole");
    options.b = fixture.folder / (is_first ? "whole" : "half");
    CHECK_ERROR(kCoverage, diff(options));
  }
  options.metadata_only = true;
  CHECK(diff(options).equal);
}

TEST_CASE("a shard of another shape is one finding, and those that it shifts are none") {
  const SplitModel fixture;
  test::Tensors tensors = test::read_tensors(fixture.folder / "parts", "model-rank-0");
  tensors["n"] = test::numbered_tensor("n", Dtype::kU8, {40});
  test::write_checkpoint(fixture.folder / "edited", tensors);
  std::filesystem::copy_file(fixture.folder / "edited/model.safetensors",
                             fixture.folder / "parts/model-rank-0-part-0.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  CheckOptions options;
  options.sources = {fixture.folder / "parts"};
  i64 shards = 0;
  for (const check::Finding& finding : check(options).findings) {
    if (finding.rule != check::CheckRule::kShardDiffers) continue;
    CHECK(finding.tensor == "n");
    ++shards;
  }
  CHECK(shards == 1);
}

TEST_CASE("the first replica may be taken on request, then only its own digest counts") {
  const SplitModel fixture;
  fixture.damage(1, kInN);
  MergeOptions options = fixture.merge_options();
  options.compare_replicas = false;
  CHECK_NOTHROW(merge(options));
}

TEST_CASE("diff reads shards where they lie and names the byte that differs") {
  const SplitModel fixture;
  DiffOptions options;
  options.a = fixture.folder / "whole";
  options.b = fixture.folder / "parts";
  CHECK(diff(options).equal);
  fixture.damage(0, kInW);
  const DiffReport report = diff(options);
  CHECK_FALSE(report.equal);
  REQUIRE(report.changed.size() == 1);
  CHECK(report.changed[0].name == "w");
  CHECK(report.changed[0].bytes_differing == 1);
  CHECK(report.changed[0].first_difference == 127);
  CHECK(report.identical == 1);
}

TEST_CASE("diff tells names, dtypes and shapes apart") {
  const TempFolder folder;
  test::Tensors a;
  a["same"] = test::numbered_tensor("same", Dtype::kF32, {2});
  a["shape"] = test::numbered_tensor("shape", Dtype::kF32, {2, 3});
  a["gone"] = test::numbered_tensor("gone", Dtype::kF32, {1});
  test::Tensors b = a;
  b["shape"] = test::numbered_tensor("shape", Dtype::kF32, {3, 2});
  b.erase("gone");
  b["new"] = test::numbered_tensor("new", Dtype::kF32, {1});
  test::write_checkpoint(folder / "a", a);
  test::write_checkpoint(folder / "b", b);
  DiffOptions options;
  options.a = folder / "a";
  options.b = folder / "b";
  const DiffReport report = diff(options);
  CHECK(report.only_a == std::vector<std::string>{"gone"});
  CHECK(report.only_b == std::vector<std::string>{"new"});
  REQUIRE(report.changed.size() == 1);
  CHECK(report.changed[0].what == "shape [2, 3] -> [3, 2]");
  CHECK(report.identical == 1);
}

TEST_CASE("tensors that are declared tied and differ are refused") {
  const TempFolder folder;
  test::Tensors tensors;
  tensors["embed"] = test::numbered_tensor("embed", Dtype::kU8, {8, 2});
  tensors["head"] = test::numbered_tensor("head", Dtype::kU8, {8, 2});
  SplitOptions options;
  options.source = folder / "tied";
  options.mapping.path = folder.write("mapping.json", R"({"version": 1,
    "mesh": [{"axis": "tp", "size": 2}], "tied": [["embed", "head"]],
    "rules": [{"match": "{embed,head}", "strategy": "rowwise"}]})");
  options.write.output = folder / "out";
  test::write_checkpoint(folder / "tied", tensors);
  CHECK_NOTHROW(split(options));
  tensors["head"].bytes[3] ^= 1;
  test::write_checkpoint(folder / "untied", tensors);
  options.source = folder / "untied";
  options.write.output = folder / "out2";
  CHECK_ERROR(kTied, split(options));
  CHECK_FALSE(std::filesystem::exists(folder / "out2"));
}

}  // namespace
}  // namespace shardtool::api
