// Every named strategy through the whole program, compared with its layout's definition.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>
#include <functional>

#include "lib/api/transform.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::TempFolder;

/// Expected global rows (or columns) of a rank, in order.
using RowsOf = std::function<std::vector<i64>(i64 rank)>;

/// Reimplements numpy.array_split.
std::vector<i64> balanced(i64 n, i64 parts, i64 part) {
  std::vector<i64> units;
  i64 begin = 0;
  for (i64 p = 0; p < part; ++p) begin += n / parts + (p < n % parts ? 1 : 0);
  for (i64 i = 0; i < n / parts + (part < n % parts ? 1 : 0); ++i) units.push_back(begin + i);
  return units;
}

/// Splits a U16 matrix of indices by a strategy and compares each rank's part row by row or column
/// by column.
void check_strategy(const std::string& strategy, Shape shape, size_t axis, i64 devices,
                    const RowsOf& expected) {
  const TempFolder folder;
  const i64 elements = element_count(shape).value();
  test::Tensor tensor{{"w", Dtype::kU16, shape}, test::Bytes(static_cast<size_t>(2 * elements))};
  for (i64 i = 0; i < elements; ++i) {
    const auto value = static_cast<std::uint16_t>(i);
    std::memcpy(tensor.bytes.data() + 2 * i, &value, 2);
  }
  test::write_checkpoint(folder / "whole", {{"w", tensor}});
  SplitOptions options;
  options.source = folder / "whole";
  options.mapping.path = folder.write(
      "mapping.json", fmt::format(R"({{"version": 1, "mesh": [{{"axis": "tp", "size": {}}}],
        "rules": [{{"match": "w", "strategy": {}}}]}})",
                                  devices, strategy));
  options.write.output = folder / "parts";
  split(options);
  for (i64 rank = 0; rank < devices; ++rank) {
    const auto shard =
        test::read_tensors(folder / "parts", fmt::format("model-rank-{}-", rank)).at("w");
    const std::vector<i64> indices = expected(rank);
    Shape local = shape;
    local[axis] = static_cast<i64>(indices.size());
    REQUIRE(shard.spec.shape == local);
    for (auto tuple : reference::tuples(local)) {
      const i64 at = reference::row_major(tuple, local);
      tuple[axis] = indices[static_cast<size_t>(tuple[axis])];
      std::uint16_t found = 0;
      std::memcpy(&found, shard.bytes.data() + 2 * at, 2);
      REQUIRE(found == static_cast<std::uint16_t>(reference::row_major(tuple, shape)));
    }
  }
}

std::vector<i64> in_units(const std::vector<i64>& units, i64 unit, i64 offset = 0) {
  std::vector<i64> indices;
  for (const i64 u : units) {
    for (i64 i = 0; i < unit; ++i) indices.push_back(offset + u * unit + i);
  }
  return indices;
}

std::vector<i64> joined(std::vector<std::vector<i64>> lists) {
  std::vector<i64> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

TEST_CASE("rowwise cuts axis 0, columnwise axis 1, axiswise any axis, also from the end") {
  check_strategy(R"("rowwise")", {10, 5}, 0, 3, [](i64 r) { return balanced(10, 3, r); });
  check_strategy(R"("columnwise")", {4, 10}, 1, 4, [](i64 r) { return balanced(10, 4, r); });
  check_strategy(R"({"type": "axiswise", "axis": -1})", {2, 3, 8}, 2, 4,
                 [](i64 r) { return balanced(8, 4, r); });
}

TEST_CASE(
    "column_parallel cuts output features, row_parallel input features, by the kernel's order") {
  check_strategy(R"({"type": "column_parallel", "kernel": "out_in"})", {8, 3}, 0, 2,
                 [](i64 r) { return balanced(8, 2, r); });
  check_strategy(R"({"type": "column_parallel", "kernel": "in_out"})", {3, 8}, 1, 2,
                 [](i64 r) { return balanced(8, 2, r); });
  check_strategy(R"({"type": "row_parallel", "kernel": "out_in"})", {3, 8}, 1, 2,
                 [](i64 r) { return balanced(8, 2, r); });
  check_strategy(R"({"type": "row_parallel", "kernel": "in_out"})", {8, 3}, 0, 2,
                 [](i64 r) { return balanced(8, 2, r); });
}

TEST_CASE("head-aware cuts keep heads whole: 10 heads of 8 over 4 devices are 3, 3, 2, 2") {
  const RowsOf heads = [](i64 r) { return in_units(balanced(10, 4, r), 8); };
  check_strategy(R"({"type": "head_aware_columnwise", "num_heads": 10, "head_dim": 8})", {3, 80}, 1,
                 4, heads);
  check_strategy(R"({"type": "head_aware_rowwise", "num_heads": 10, "head_dim": 8})", {80, 3}, 0, 4,
                 heads);
}

TEST_CASE("stacked_qkv takes each device's heads of Q, of K and of V, weight and bias alike") {
  const RowsOf rows = [](i64 r) {
    const auto heads = balanced(7, 3, r);
    return joined({in_units(heads, 2), in_units(heads, 2, 14), in_units(heads, 2, 28)});
  };
  const std::string strategy = R"({"type": "stacked_qkv", "num_heads": 7, "head_dim": 2})";
  check_strategy(strategy, {42, 3}, 0, 3, rows);
  check_strategy(strategy, {42}, 0, 3, rows);
}

TEST_CASE("stacked_qkv under grouped-query attention deals out whole KV groups") {
  check_strategy(R"({"type": "stacked_qkv", "num_heads": 28, "num_kv_heads": 4, "head_dim": 2})",
                 {72, 2}, 0, 3, [](i64 r) {
                   const auto kv = balanced(4, 3, r);
                   return joined({in_units(kv, 14), in_units(kv, 2, 56), in_units(kv, 2, 64)});
                 });
}

TEST_CASE("stacked_qkv knows q, k, v per head and per KV group") {
  check_strategy(R"({"type": "stacked_qkv", "num_heads": 6, "head_dim": 2, "order": "per_head"})",
                 {36, 2}, 0, 4, [](i64 r) { return in_units(balanced(6, 4, r), 6); });
  check_strategy(
      R"({"type": "stacked_qkv", "num_heads": 8, "num_kv_heads": 4, "head_dim": 2, "order": "per_kv_group"})",
      {32, 2}, 0, 2, [](i64 r) { return in_units(balanced(4, 2, r), 8); });
}

TEST_CASE("gate_up cuts gate and up apart, stacked, and pairs together, interleaved") {
  const RowsOf halves = [](i64 r) {
    return joined({balanced(10, 4, r), in_units(balanced(10, 4, r), 1, 10)});
  };
  check_strategy(R"({"type": "gate_up"})", {2, 3, 20}, 2, 4, halves);
  check_strategy(R"({"type": "gate_up", "axis": 0})", {20, 3}, 0, 4, halves);
  check_strategy(R"({"type": "gate_up", "axis": 0, "layout": "interleaved"})", {20, 3}, 0, 4,
                 [](i64 r) { return in_units(balanced(10, 4, r), 2); });
}

TEST_CASE("expert_parallel deals 60 stacked experts over 8 devices and loses none") {
  check_strategy(R"({"type": "expert_parallel"})", {60, 2, 2}, 0, 8,
                 [](i64 r) { return balanced(60, 8, r); });
}

TEST_CASE("segmented cuts each section by itself") {
  check_strategy(R"({"type": "segmented", "axis": 0, "segments": [6, 10]})", {16, 2}, 0, 4,
                 [](i64 r) {
                   return joined({balanced(6, 4, r), in_units(balanced(10, 4, r), 1, 6)});
                 });
}

}  // namespace
}  // namespace shardtool::api
