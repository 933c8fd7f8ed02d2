#include "lib/layout/strategy.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>

#include "lib/layout/layout.h"
#include "tests/support/held.h"
#include "tests/support/throws.h"

using namespace shardtool;
using namespace shardtool::testing;
using layout::GateUpOrder;
using layout::Kernel;
using layout::QkvHeads;
using layout::QkvOrder;
using layout::Segment;
using layout::SmallPolicy;
using layout::StrategyKind;
using S = layout::ShardingStrategy;

namespace {

/// Intervals of each of `devices` along the axis that the strategy cuts; the other axes are whole.
Held cut(const S& strategy, const Shape& shape, size_t axis, i64 devices) {
  const auto axes = strategy.apply(shape, tp(devices));
  REQUIRE(axes.size() == shape.size());
  for (size_t a = 0; a < axes.size(); ++a) {
    CHECK(axes[a].size() == shape[a]);
    CHECK((a == axis || !axes[a].is_sharded()));
  }
  return held(axes[axis], tp(devices));
}

std::vector<i64> sizes(const S& strategy, const Shape& shape, size_t axis, i64 devices) {
  return extents(strategy.apply(shape, tp(devices))[axis], tp(devices));
}

QkvHeads equal_heads(i64 heads, i64 dim, QkvOrder order = QkvOrder::kConcat) {
  return {heads, heads, dim, order, SmallPolicy::kError};
}

}  // namespace

TEST_CASE("rowwise cuts axis 0, whatever the rank") {
  CHECK(sizes(S::rowwise(kTp), {1024, 512}, 0, 4) == std::vector<i64>(4, 256));
  CHECK(sizes(S::rowwise(kTp), {10, 5}, 0, 3) == std::vector<i64>{4, 3, 3});
  CHECK(sizes(S::rowwise(kTp), {151674, 4096}, 0, 4) ==
        std::vector<i64>{37919, 37919, 37918, 37918});
  CHECK(cut(S::rowwise(kTp), {14336, 4096}, 0, 4) ==
        Held{"[0, 3584)", "[3584, 7168)", "[7168, 10752)", "[10752, 14336)"});
  CHECK(cut(S::rowwise(kTp), {640, 8}, 0, 4) ==
        Held{"[0, 160)", "[160, 320)", "[320, 480)", "[480, 640)"});
  CHECK(cut(S::rowwise(kTp), {4}, 0, 2) == Held{"[0, 2)", "[2, 4)"});
}

TEST_CASE("columnwise cuts axis 1, and a tensor of rank 1 has none") {
  CHECK(sizes(S::columnwise(kTp), {512, 1024}, 1, 4) == std::vector<i64>(4, 256));
  CHECK(sizes(S::columnwise(kTp), {4096, 151674}, 1, 4) ==
        std::vector<i64>{37919, 37919, 37918, 37918});
  CHECK(cut(S::columnwise(kTp), {4096, 14336}, 1, 4)[0] == "[0, 3584)");
  CHECK(cut(S::columnwise(kTp), {4, 10}, 1, 4) == Held{"[0, 3)", "[3, 6)", "[6, 8)", "[8, 10)"});
  const auto refused = error_of([] { return S::columnwise(kTp).apply({10}, tp(2)); });
  REQUIRE(refused);
  CHECK(refused->code() == ErrorCode::kShapeMismatch);
  CHECK(refused->message() == "columnwise cuts axis 1, but the tensor [10] has rank 1");
}

TEST_CASE("axiswise cuts any axis, negative ones from the end") {
  const Shape experts{8, 1024, 1536};
  CHECK(sizes(S::axiswise(1, kTp), experts, 1, 4) == std::vector<i64>(4, 256));
  CHECK(sizes(S::axiswise(-1, kTp), experts, 2, 4) == std::vector<i64>(4, 384));
  CHECK(sizes(S::axiswise(-3, kTp), experts, 0, 4) == std::vector<i64>(4, 2));
  CHECK(sizes(S::axiswise(0, kTp), experts, 0, 3) == std::vector<i64>{3, 3, 2});
  CHECK_ERROR(kShapeMismatch, S::axiswise(3, kTp).apply(experts, tp(2)));
  CHECK_ERROR(kShapeMismatch, S::axiswise(-4, kTp).apply(experts, tp(2)));
  CHECK_ERROR(kShapeMismatch, S::rowwise(kTp).apply({}, tp(2)));
}

TEST_CASE("replicate cuts nothing, of any rank") {
  for (const auto& axis : S::replicate().apply({4, 5}, tp(3))) CHECK_FALSE(axis.is_sharded());
  CHECK(S::replicate().apply({}, tp(3)).empty());
}

TEST_CASE("column_parallel and row_parallel cut output and input features of either kernel") {
  const Shape kernel{6, 10};
  CHECK(cut(S::column_parallel(Kernel::kOutIn, kTp), kernel, 0, 2)[0] == "[0, 3)");
  CHECK(cut(S::column_parallel(Kernel::kInOut, kTp), kernel, 1, 2)[0] == "[0, 5)");
  CHECK(cut(S::row_parallel(Kernel::kOutIn, kTp), kernel, 1, 2)[0] == "[0, 5)");
  CHECK(cut(S::row_parallel(Kernel::kInOut, kTp), kernel, 0, 2)[0] == "[0, 3)");
  for (const Kernel order : {Kernel::kOutIn, Kernel::kInOut}) {
    CHECK(cut(S::column_parallel(order, kTp), {10}, 0, 2)[1] == "[5, 10)");
    CHECK_FALSE(S::row_parallel(order, kTp).apply({6}, tp(2))[0].is_sharded());
    CHECK_ERROR(kShapeMismatch, S::column_parallel(order, kTp).apply({4, 6, 10}, tp(2)));
    CHECK_ERROR(kShapeMismatch, S::row_parallel(order, kTp).apply({4, 6, 10}, tp(2)));
  }
}

TEST_CASE("stacked_qkv cuts Q, K and V by head and joins the parts") {
  CHECK(sizes(S::stacked_qkv(equal_heads(32, 64), kTp), {6144, 8}, 0, 4) ==
        std::vector<i64>(4, 1536));
  CHECK(sizes(S::stacked_qkv(equal_heads(30, 64), kTp), {5760, 8}, 0, 4) ==
        std::vector<i64>{1536, 1536, 1344, 1344});
  CHECK(
      cut(S::stacked_qkv(equal_heads(7, 2), kTp), {42, 8}, 0, 3) ==
      Held{"[0, 6) [14, 20) [28, 34)", "[6, 10) [20, 24) [34, 38)", "[10, 14) [24, 28) [38, 42)"});
  CHECK(cut(S::stacked_qkv(equal_heads(10, 64), kTp), {1920, 640}, 0, 4) ==
        Held{"[0, 192) [640, 832) [1280, 1472)", "[192, 384) [832, 1024) [1472, 1664)",
             "[384, 512) [1024, 1152) [1664, 1792)", "[512, 640) [1152, 1280) [1792, 1920)"});
}

TEST_CASE("the bias of a stacked projection takes the same strategy") {
  CHECK(cut(S::stacked_qkv(equal_heads(4, 2), kTp), {24}, 0, 2)[0] == "[0, 4) [8, 12) [16, 20)");
}

TEST_CASE("stacked_qkv knows grouped heads and interleaved orders") {
  const QkvHeads gqa{32, 8, 128, QkvOrder::kConcat, SmallPolicy::kError};
  CHECK(cut(S::stacked_qkv(gqa, kTp), {6144, 8}, 0, 4)[0] == "[0, 1024) [4096, 4352) [5120, 5376)");
  CHECK(cut(S::stacked_qkv(gqa, kTp), {6144, 8}, 0, 4)[3] ==
        "[3072, 4096) [4864, 5120) [5888, 6144)");
  CHECK(cut(S::stacked_qkv(equal_heads(4, 2, QkvOrder::kPerHead), kTp), {24}, 0, 3) ==
        Held{"[0, 12)", "[12, 18)", "[18, 24)"});
  const QkvHeads groups{8, 2, 4, QkvOrder::kPerKvGroup, SmallPolicy::kError};
  CHECK(cut(S::stacked_qkv(groups, kTp), {48, 8}, 0, 2) == Held{"[0, 24)", "[24, 48)"});
  CHECK(cut(S::stacked_qkv(equal_heads(4, 2), kTp, -1), {8, 24}, 1, 2)[0] ==
        "[0, 4) [8, 12) [16, 20)");
}

TEST_CASE("every order of stacked_qkv obeys \"small\" where there are fewer heads than devices") {
  for (const QkvOrder order : {QkvOrder::kConcat, QkvOrder::kPerHead, QkvOrder::kPerKvGroup}) {
    CAPTURE(static_cast<int>(order));
    const auto of = [&](SmallPolicy small) { return S::stacked_qkv({2, 2, 2, order, small}, kTp); };
    CHECK_ERROR(kGroups, of(SmallPolicy::kError).apply({12}, tp(4)));
    if (order == QkvOrder::kPerKvGroup) {
      CHECK(sizes(of(SmallPolicy::kReplicate), {12}, 0, 4) == std::vector<i64>(4, 6));
    } else {
      CHECK_ERROR(kGroups, of(SmallPolicy::kReplicate).apply({12}, tp(4)));
    }
    CHECK(sizes(of(SmallPolicy::kGather), {12}, 0, 4) == std::vector<i64>{6, 6, 0, 0});
  }
}

TEST_CASE("devices that share a KV head in per_kv_group hold its whole group") {
  // Two groups, each of 4 query heads, a key and a value head, 2 rows per head.
  const auto of = [](SmallPolicy small) {
    return S::stacked_qkv({8, 2, 2, QkvOrder::kPerKvGroup, small}, kTp);
  };
  const Held groups = {"[0, 12)", "[0, 12)", "[12, 24)", "[12, 24)"};
  CHECK(cut(of(SmallPolicy::kReplicate), {24, 3}, 0, 4) == groups);
  CHECK(cut(of(SmallPolicy::kGather), {24, 3}, 0, 4) == groups);
}

TEST_CASE("per_kv_group shares whole groups for any number of query heads in a group") {
  for (i64 kv = 1; kv <= 3; ++kv) {
    for (i64 group = 1; group <= 5; ++group) {
      for (i64 sharing = 2; sharing <= 4; ++sharing) {
        CAPTURE(kv);
        CAPTURE(group);
        CAPTURE(sharing);
        const i64 rows = (group + 2) * 2;  // of a group, 2 per head
        const S strategy = S::stacked_qkv(
            {kv * group, kv, 2, QkvOrder::kPerKvGroup, SmallPolicy::kReplicate}, kTp);
        Held groups;
        for (i64 rank = 0; rank < kv * sharing; ++rank) {
          const i64 begin = rank / sharing * rows;
          groups.push_back(fmt::format("[{}, {})", begin, begin + rows));
        }
        CHECK(cut(strategy, {kv * rows, 3}, 0, kv * sharing) == groups);
      }
    }
  }
  const S error = S::stacked_qkv({3, 1, 2, QkvOrder::kPerKvGroup, SmallPolicy::kError}, kTp);
  const auto refused = error_of([&] { error.apply({10}, tp(2)); });
  REQUIRE(refused);
  CHECK(refused->help_lines().front() ==
        "device counts that work: 1 2 3 (above 1 with \"small\": \"replicate\")");
}

TEST_CASE("stacked_qkv refuses sizes that do not fit, with the sizes") {
  const auto refused = error_of([] {
    return S::stacked_qkv(equal_heads(32, 128), kTp).apply({6144, 8}, tp(4));
  });
  REQUIRE(refused);
  CHECK(refused->code() == ErrorCode::kStrategy);
  CHECK(refused->message() ==
        "stacked_qkv expects an axis of (num_heads + 2*num_kv_heads)*head_dim = 12288, found 6144");
  CHECK_ERROR(kStrategy, S::stacked_qkv(equal_heads(3, 2), kTp).apply({16}, tp(2)));
  CHECK_ERROR(kStrategy, S::stacked_qkv({4, 2, 2, QkvOrder::kPerHead, {}}, kTp).apply({16}, tp(2)));
  CHECK_ERROR(
      kGroups,
      S::stacked_qkv({8, 2, 2, QkvOrder::kConcat, SmallPolicy::kError}, kTp).apply({24}, tp(4)));
  CHECK_ERROR(kShapeMismatch, S::stacked_qkv(equal_heads(4, 2), kTp, 2).apply({24, 8}, tp(2)));
}

TEST_CASE("head_aware_columnwise cuts whole heads of axis 1") {
  CHECK(sizes(S::head_aware_columnwise(32, 64, kTp), {8, 2048}, 1, 4) == std::vector<i64>(4, 512));
  CHECK(sizes(S::head_aware_columnwise(30, 64, kTp), {8, 1920}, 1, 4) ==
        std::vector<i64>{512, 512, 448, 448});
  CHECK(cut(S::head_aware_columnwise(10, 64, kTp), {8, 640}, 1, 4) ==
        Held{"[0, 192)", "[192, 384)", "[384, 512)", "[512, 640)"});
  CHECK(cut(S::head_aware_columnwise(2, 128, kTp), {8, 256}, 1, 4) ==
        Held{"[0, 128)", "[128, 256)", "nothing", "nothing"});
  CHECK(cut(S::head_aware_rowwise(10, 64, kTp), {640, 8}, 0, 4)[3] == "[512, 640)");
}

TEST_CASE("head_aware_columnwise refuses another width, also one that a packing would explain") {
  const auto refused = error_of([] {
    return S::head_aware_columnwise(10, 64, kTp).apply({8, 320}, tp(4));
  });
  REQUIRE(refused);
  CHECK(refused->code() == ErrorCode::kStrategy);
  CHECK(refused->message() == "head_aware_columnwise expects an axis of 10*64 = 640, found 320");
  CHECK_ERROR(kShapeMismatch, S::head_aware_columnwise(10, 64, kTp).apply({640}, tp(4)));
}

TEST_CASE("gate_up cuts gate and up each, and joins the parts") {
  CHECK(cut(S::gate_up(kTp), {8, 1024, 1536}, 2, 4) ==
        Held{"[0, 192) [768, 960)", "[192, 384) [960, 1152)", "[384, 576) [1152, 1344)",
             "[576, 768) [1344, 1536)"});
  const auto mlp = cut(S::gate_up(kTp, 0), {28672, 4096}, 0, 4);
  CHECK(mlp[0] == "[0, 3584) [14336, 17920)");
  CHECK(mlp[3] == "[10752, 14336) [25088, 28672)");
  CHECK(cut(S::gate_up(kTp, 0), {20}, 0, 4) ==
        Held{"[0, 3) [10, 13)", "[3, 6) [13, 16)", "[6, 8) [16, 18)", "[8, 10) [18, 20)"});
}

TEST_CASE("an interleaved gate and up is cut in pairs") {
  CHECK(cut(S::gate_up(kTp, 0, GateUpOrder::kInterleaved), {20}, 0, 4) ==
        Held{"[0, 6)", "[6, 12)", "[12, 16)", "[16, 20)"});
}

TEST_CASE("gate_up refuses an odd extent") {
  CHECK_ERROR(kStrategy, S::gate_up(kTp, 0).apply({21}, tp(4)));
  CHECK_ERROR(kStrategy, S::gate_up(kTp, 0, GateUpOrder::kStacked, 3).apply({20}, tp(4)));
  CHECK_ERROR(kStrategy, S::gate_up(kTp, 0, GateUpOrder::kStacked, 0).apply({20}, tp(4)));
  CHECK_ERROR(kShapeMismatch, S::gate_up(kTp).apply({20, 20}, tp(4)));
}

TEST_CASE("segmented cuts each section by itself: attention by head, MLP by element") {
  const std::vector<Segment> flux{Segment::head_aware(24, 256), Segment::head_aware(24, 256),
                                  Segment::head_aware(24, 256), Segment::even(18432),
                                  Segment::even(18432)};
  CHECK(cut(S::segmented(flux, kTp), {55296, 8}, 0, 4)[1] ==
        "[1536, 3072) [7680, 9216) [13824, 15360) [23040, 27648) [41472, 46080)");
  CHECK(sizes(S::segmented(flux, kTp), {55296, 8}, 0, 4) ==
        std::vector<i64>(4, 3 * 6 * 256 + 2 * 4608));
  CHECK(sizes(S::segmented({Segment::head_aware(24, 256), Segment::even(18432)}, kTp, 1),
              {8, 24576}, 1, 4) == std::vector<i64>(4, 1536 + 4608));
  CHECK(sizes(S::segmented({Segment::even(257), Segment::head_aware(10, 4)}, kTp), {297}, 0, 4) ==
        std::vector<i64>{65 + 12, 64 + 12, 64 + 8, 64 + 8});
}

TEST_CASE("segments that do not cover the axis are refused, with the sum") {
  const auto refused = error_of([] {
    return S::segmented({Segment::head_aware(4, 8), Segment::even(10)}, kTp).apply({50}, tp(2));
  });
  REQUIRE(refused);
  CHECK(refused->message() == "segmented expects an axis of 4*8 + 10 = 42, found 50");
  CHECK_ERROR(kStrategy, S::segmented({}, kTp).apply({50}, tp(2)));
  CHECK_ERROR(kStrategy,
              S::segmented({Segment::even(-1), Segment::even(51)}, kTp).apply({50}, tp(2)));
}

TEST_CASE("sizes from files that overflow are refused") {
  constexpr i64 kHalf = std::numeric_limits<i64>::max() / 2 + 1;
  CHECK_ERROR(kLimit,
              S::segmented({Segment::even(kHalf), Segment::even(kHalf)}, kTp).apply({50}, tp(2)));
  CHECK_ERROR(kLimit, S::head_aware_rowwise(kHalf, 2, kTp).apply({50}, tp(2)));
  CHECK_ERROR(kLimit, S::stacked_qkv(equal_heads(kHalf, 1), kTp).apply({50}, tp(2)));
  CHECK_ERROR(kLimit,
              S::stacked_qkv(equal_heads(2, kHalf, QkvOrder::kPerHead), kTp).apply({50}, tp(2)));
  CHECK_ERROR(kStrategy,
              S::stacked_qkv(equal_heads(0, kHalf, QkvOrder::kPerHead), kTp).apply({0}, tp(2)));
}

TEST_CASE("expert_parallel cuts the stacked experts, tensor_parallel no single tensor") {
  CHECK(sizes(S::expert_parallel(kTp), {60, 4, 4}, 0, 8) ==
        std::vector<i64>{8, 8, 8, 8, 7, 7, 7, 7});
  CHECK(cut(S::expert_parallel(kTp), {128, 4, 4}, 0, 8)[3] == "[48, 64)");
  CHECK_ERROR(kStrategy, S::tensor_parallel(kTp).apply({8, 8}, tp(2)));
}

TEST_CASE("exact refuses what does not divide when it is laid over the mesh") {
  const auto axes = S::rowwise(kTp, layout::kExact).apply({10, 4}, tp(4));
  CHECK_ERROR(kNotDivisible, layout::Layout(tp(4), {10, 4}, {{axes[0], 1, {}}, {axes[1], 1, {}}}));
}

TEST_CASE("the cut axis of each strategy is what MAX answers") {
  CHECK(S::rowwise(kTp).sharded_axis() == 0);
  CHECK(S::columnwise(kTp).sharded_axis() == 1);
  CHECK(S::axiswise(-1, kTp).sharded_axis() == -1);
  CHECK(S::head_aware_columnwise(4, 2, kTp).sharded_axis() == 1);
  CHECK(S::head_aware_rowwise(4, 2, kTp).sharded_axis() == 0);
  CHECK(S::stacked_qkv(equal_heads(4, 2), kTp).sharded_axis() == 0);
  CHECK(S::gate_up(kTp).sharded_axis() == 2);
  CHECK(S::segmented({Segment::even(4)}, kTp, 1).sharded_axis() == 1);
  CHECK(S::expert_parallel(kTp).sharded_axis() == 0);
  CHECK(S::column_parallel(Kernel::kInOut, kTp).sharded_axis() == 1);
  CHECK(S::row_parallel(Kernel::kInOut, kTp).sharded_axis() == 0);
  CHECK(S::replicate().sharded_axis() == std::nullopt);
  CHECK(S::tensor_parallel(kTp).sharded_axis() == std::nullopt);
}

TEST_CASE("a kind is read as it is printed, and rowwise is not axiswise(0)") {
  for (int k = 0; k <= static_cast<int>(StrategyKind::kTensorParallel); ++k) {
    const auto kind = static_cast<StrategyKind>(k);
    CHECK(layout::parse_strategy_kind(to_string(kind)) == kind);
  }
  CHECK(layout::parse_strategy_kind("row_wise") == std::nullopt);
  CHECK(S::rowwise(kTp).is(StrategyKind::kRowwise));
  CHECK_FALSE(S::axiswise(0, kTp).is(StrategyKind::kRowwise));
}
