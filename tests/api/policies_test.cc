// Mapping policies other than cuts: padding that repeats elements, and biases that are added once.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>

#include "lib/api/diff.h"
#include "lib/api/explain.h"
#include "lib/api/transform.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::TempFolder;
using test::Tensors;

/// Splits over tp by a mapping with this body.
void split_by(const TempFolder& folder, const Tensors& tensors, const std::string& mapping,
              i64 tp) {
  test::write_checkpoint(folder / "whole", tensors);
  SplitOptions options;
  options.source = folder / "whole";
  options.mapping.path = folder.write("mapping.json", R"({"version": 1, )" + mapping + "}");
  options.mapping.mesh = mesh::parse_mesh(fmt::format("tp={}", tp));
  options.write.output = folder / "parts";
  split(options);
}

/// Checks merge(split(x)) = x.
void check_merge(const TempFolder& folder, const Tensors& tensors) {
  MergeOptions options;
  options.sources = {folder / "parts"};
  options.write.output = folder / "merged";
  merge(options);
  const Tensors merged = test::read_tensors(folder / "merged", "model");
  for (const auto& [name, tensor] : tensors) {
    CAPTURE(name);
    CHECK(merged.at(name).bytes == tensor.bytes);
  }
  DiffOptions comparing;
  comparing.a = folder / "whole";
  comparing.b = folder / "parts";
  CHECK(diff(comparing).equal);
}

Tensors part(const TempFolder& folder, i64 rank) {
  return test::read_tensors(folder / "parts", fmt::format("model-rank-{}-", rank));
}

TEST_CASE("a padded vocabulary can repeat its last row, merging drops the copies") {
  const TempFolder folder;
  const Tensors whole = {{"embed", test::numbered_tensor("embed", Dtype::kU16, {10, 3})}};
  split_by(
      folder, whole,
      R"("axes": {"vocab": {"mesh": "tp", "uneven": "pad", "pad_to": 8, "padding": "repeat_last"}},
              "rules": [{"match": "embed", "dims": ["vocab", null]}])",
      4);
  const auto row = [](const test::Bytes& bytes, size_t r) {
    return test::Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(6 * r),
                       bytes.begin() + static_cast<std::ptrdiff_t>(6 * r + 6));
  };
  for (i64 rank = 0; rank < 4; ++rank) {
    const test::Bytes bytes = part(folder, rank).at("embed").bytes;
    REQUIRE(bytes.size() == 4 * 6);  // 16 rows over 4
    for (size_t r = 0; r < 4; ++r) {
      const size_t global = std::min<size_t>(9, static_cast<size_t>(rank) * 4 + r);
      CHECK(row(bytes, r) == row(whole.at("embed").bytes, global));
    }
  }
  check_merge(folder, whole);
}

TEST_CASE("padding of columns can repeat the last one, too") {
  const TempFolder folder;
  const Tensors whole = {{"head", test::numbered_tensor("head", Dtype::kU16, {3, 5})}};
  split_by(folder, whole,
           R"("axes": {"vocab": {"mesh": "tp", "uneven": "pad", "padding": "repeat_last"}},
              "rules": [{"match": "head", "dims": [null, "vocab"]}])",
           3);
  const test::Bytes last = part(folder, 2).at("head").bytes;  // columns 4 and a copy of it
  REQUIRE(last.size() == 3 * 2 * 2);
  for (size_t r = 0; r < 3; ++r) {
    const test::Bytes& all = whole.at("head").bytes;
    for (size_t byte = 0; byte < 2; ++byte) {
      CHECK(last[4 * r + byte] == all[10 * r + 8 + byte]);
      CHECK(last[4 * r + 2 + byte] == all[10 * r + 8 + byte]);
    }
  }
  check_merge(folder, whole);
}

TEST_CASE("explain shows extents with their padding, those of scales in blocks") {
  const auto explained = [](i64 rows, const std::string& tensor) {
    const TempFolder folder;
    const Tensors whole = {
        {"a.weight", test::numbered_tensor("a.weight", Dtype::kU8, {rows, 4})},
        {"a.scale", test::numbered_tensor("a.scale", Dtype::kF32, {rows / 2, 1})}};
    test::write_checkpoint(folder / "whole", whole);
    ExplainOptions options;
    options.source = folder / "whole";
    options.tensor = tensor;
    options.mapping.mesh = mesh::parse_mesh("tp=2");
    options.mapping.path = folder.write("mapping.json", R"({"version": 1, "straddle": "pad",
        "axes": {"rows": "tp"}, "rules": [{"match": "a.weight", "dims": ["rows", null]}],
        "companions": [{"of": "**.weight", "is": "**.scale", "kind": "block_scale",
                        "block": [2, 4]}]})");
    return explain(options).axes.at(0).rounded;
  };
  CHECK(explained(12, "a.weight") == 12);
  CHECK(explained(12, "a.scale") == 6);
  CHECK(explained(10, "a.weight") == 12);
  CHECK(explained(10, "a.scale") == 6);
}

Tensors biased(const std::vector<float>& values) {
  test::Tensor bias{{"down.bias", Dtype::kF32, {static_cast<i64>(values.size())}},
                    test::Bytes(values.size() * 4)};
  std::memcpy(bias.bytes.data(), values.data(), bias.bytes.size());
  return {{"down.bias", bias}};
}

std::string bias_mapping(const std::string& policy) {
  return fmt::format(R"("reduced_bias": "{}",
    "rules": [{{"match": "down.bias", "dims": [null], "bias": "after_reduction"}}])",
                     policy);
}

std::vector<float> floats(const test::Tensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / 4);
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

TEST_CASE("the bias of a row-parallel layer can be on the first device alone") {
  const TempFolder folder;
  const Tensors whole = biased({1, -2.5, 0});
  split_by(folder, whole, bias_mapping("first"), 3);
  CHECK(part(folder, 0).at("down.bias").bytes == whole.at("down.bias").bytes);
  CHECK_FALSE(part(folder, 1).contains("down.bias"));
  CHECK_FALSE(part(folder, 2).contains("down.bias"));
  check_merge(folder, whole);
}

TEST_CASE("or be divided among the devices: the parts add up to it, exactly") {
  const TempFolder folder;
  // The quarters of the last ones are below the normal numbers, which end at 0x1p-126.
  const std::vector<float> values = {1,           -2.5,       0,           3e38f,     0x1p-120f,
                                     0x1.cp-125f, -0x1p-126f, 0x1.8p-146f, -0x1p-147f};
  const Tensors whole = biased(values);
  split_by(folder, whole, bias_mapping("divide"), 4);
  std::vector<float> sum(values.size());
  for (i64 rank = 0; rank < 4; ++rank) {
    const auto own = floats(part(folder, rank).at("down.bias"));
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
  }
  CHECK(sum == values);
  check_merge(folder, whole);
}

TEST_CASE("a division that is not exact is refused") {
  const TempFolder folder;
  CHECK_ERROR(kStrategy, split_by(folder, biased({1}), bias_mapping("divide"), 3));
  CHECK_ERROR(kDataMismatch,
              split_by(folder, biased({0x1.000002p-126f}), bias_mapping("divide"), 2));
  CHECK_ERROR(kDataMismatch, split_by(folder, biased({0x1p-148f}), bias_mapping("divide"), 4));
}

}  // namespace
}  // namespace shardtool::api
