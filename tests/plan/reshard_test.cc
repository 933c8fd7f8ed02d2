#include "lib/plan/reshard.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "tests/plan/one_axis.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

using namespace shardtool;
using plan::cut;
using plan::holders_of;
using plan::plan_reshard;
using plan::ReshardPlan;
using plan::ReshardTensor;
using plan::whole_on;

namespace {

/// Tensors with separate layouts over one mesh per side.
struct Case {
  std::vector<layout::Layout> from;
  std::vector<layout::Layout> to;
  i64 from_devices = 0;
  i64 to_devices = 0;

  std::vector<ReshardTensor> tensors() const {
    std::vector<ReshardTensor> list;
    for (size_t t = 0; t < from.size(); ++t)
      list.push_back({"t", 16, holders_of(from[t]), holders_of(to[t])});
    return list;
  }
  ReshardPlan plan() const {
    plan::TrafficOptions options;
    options.from_devices = from_devices;
    options.to_devices = to_devices;
    return plan_reshard(tensors(), options);
  }
};

Case any_case() {
  Case one;
  const i64 kinds = *gen::between(1, 3);
  for (i64 k = 0; k < kinds; ++k) {
    const Shape shape = *gen::shape();
    const layout::Layout from = *gen::layout(shape);
    const layout::Layout to = *gen::layout(shape);
    const i64 copies = *gen::between(1, 3);
    for (i64 c = 0; c < copies; ++c) {
      one.from.push_back(from);
      one.to.push_back(to);
    }
    one.from_devices = std::max(one.from_devices, from.mesh().size());
    one.to_devices = std::max(one.to_devices, to.mesh().size());
  }
  return one;
}

TEST_CASE("a plan's sums are those of its tensors, and what is sent is received") {
  CHECK(rc::check("R1 to R3", [] {
    const Case one = any_case();
    const ReshardPlan got = one.plan();
    i64 moved = 0;
    i64 changes = 0;
    i64 transfers = 0;
    for (const ReshardTensor& tensor : one.tensors()) {
      const auto each = plan::traffic(tensor.from, tensor.to, tensor.bits, 8);
      moved += each.moved;
      changes += each.moved > 0 ? 1 : 0;
      transfers += static_cast<i64>(each.transfers.size());
    }
    RC_ASSERT(got.bytes_moved == moved);
    RC_ASSERT(got.changes == changes);
    RC_ASSERT(got.transfers == transfers);
    RC_ASSERT(got.bytes_total == got.bytes_kept + got.bytes_moved);
    RC_ASSERT(got.bytes_moved == got.lower_bound);
    i64 sent = 0;
    i64 received = 0;
    for (const auto& rank : got.per_rank) {
      sent += rank.send;
      received += rank.receive;
    }
    RC_ASSERT(sent == got.bytes_moved);
    RC_ASSERT(received == got.bytes_moved);
  }));
}

TEST_CASE("tensors with equal layouts are one group, wherever their layouts are stored") {
  const std::vector<layout::Layout> from{cut({8, 4}, 2), cut({8, 4}, 2), cut({8, 4}, 4)};
  const std::vector<layout::Layout> to{cut({8, 4}, 4), cut({8, 4}, 4), cut({8, 4}, 4)};
  const ReshardPlan got = Case{from, to, 4, 4}.plan();
  CHECK(got.group_of_tensor == std::vector<size_t>{0, 0, 1});
  CHECK(got.changes == 2);
}

/// Minimum of bytes moved over all assignments of ranks to devices.
i64 least_moved(const Case& one, const ReshardPlan& plan) {
  const auto devices = static_cast<i64>(plan.per_rank.size());
  std::vector<i64> overlap(static_cast<size_t>(one.to_devices * devices), 0);
  for (const ReshardTensor& tensor : one.tensors())
    plan::add_overlaps(tensor.from, tensor.to, tensor.bits, 1, devices, overlap);
  std::vector<i64> order(static_cast<size_t>(devices));
  std::iota(order.begin(), order.end(), i64{0});
  i64 most = 0;
  do {
    i64 kept = 0;
    for (i64 rank = 0; rank < one.to_devices; ++rank)
      kept += overlap[static_cast<size_t>(rank * devices + order[static_cast<size_t>(rank)])];
    most = std::max(most, kept);
  } while (std::next_permutation(order.begin(), order.end()));
  return plan.bytes_total - most;
}

/// Layouts on few enough devices to try every order: rows or columns, even or uneven, or
/// replicated.
layout::Layout any_small_layout(const Shape& shape, i64 devices) {
  if (*gen::between(0, 3) == 0) return whole_on(shape, devices);
  const auto rule = *rc::gen::element(layout::kBalanced, layout::kCeil, layout::padded(2));
  return cut(shape, devices, static_cast<size_t>(*gen::between(0, 1)), rule);
}

Case any_small_case() {
  Case one;
  one.from_devices = *gen::between(1, 6);
  one.to_devices = *gen::between(1, 6);
  for (i64 kinds = *gen::between(1, 3); kinds > 0; --kinds) {
    const Shape shape{*gen::between(1, 12), *gen::between(1, 12)};
    one.from.push_back(any_small_layout(shape, one.from_devices));
    one.to.push_back(any_small_layout(shape, one.to_devices));
  }
  return one;
}

TEST_CASE("no numbering of the new ranks moves less than the one that is found") {
  CHECK(rc::check("renumbering", [] {
    const Case one = any_small_case();
    const ReshardPlan got = one.plan();
    RC_ASSERT(got.renumbering.has_value());
    RC_ASSERT(got.renumbering->bytes_moved <= got.bytes_moved);
    RC_ASSERT(got.renumbering->bytes_moved == least_moved(one, got));
  }));
}

// Fractions of all bytes, computed by hand: 4 -> 8 keeps only the first eighth; renumbered, every
// old device keeps one of its two halves.
TEST_CASE("tensor parallel over other numbers of devices: what moves, and renumbered (D33)") {
  struct Row {
    i64 from, to, moved_of, moved, renumbered;
  };
  for (const Row& row : {Row{4, 8, 8, 7, 4}, Row{8, 4, 8, 7, 4}, Row{2, 3, 6, 3, 2},
                         Row{3, 4, 12, 6, 4}, Row{8, 6, 12, 9, 4}}) {
    const Shape shape{48};
    const ReshardPlan got =
        Case{{cut(shape, row.from)}, {cut(shape, row.to)}, row.from, row.to}.plan();
    CAPTURE(row.from);
    CAPTURE(row.to);
    CHECK(got.bytes_moved * row.moved_of == got.bytes_total * row.moved);
    CHECK(got.renumbering->bytes_moved * row.moved_of == got.bytes_total * row.renumbered);
  }
}

TEST_CASE("above a limit the largest overlaps are kept first, and a bound says what is lost") {
  // Four quarters to two halves, renumbered: each half stays with one of its quarters.
  const layout::Layout quarters = cut({8}, 4);
  const layout::Layout halves = cut({8}, 2);
  const std::vector<ReshardTensor> tensors{{"t", 16, holders_of(quarters), holders_of(halves)}};
  plan::TrafficOptions options{.from_devices = 4, .to_devices = 2};
  const auto best = plan_reshard(tensors, options).renumbering;
  options.best_numbering_limit = 1;
  const auto greedy = plan_reshard(tensors, options).renumbering;
  REQUIRE(best);
  REQUIRE(greedy);
  CHECK(best->bytes_moved == 8);
  CHECK(best->lower_bound == 8);
  CHECK(greedy->bytes_moved == 8);
  CHECK(greedy->lower_bound == 8);
  options.numbering_limit = 3;
  CHECK_FALSE(plan_reshard(tensors, options).renumbering);
}

TEST_CASE("renumbered by one, nothing has to move") {
  const layout::Layout from = cut({8}, 4);
  const std::vector<i64> turned{1, 2, 3, 0};
  plan::TrafficOptions options;
  options.from_devices = options.to_devices = 4;
  const std::vector<ReshardTensor> tensors{{"t", 16, holders_of(from), {&from.holders(), turned}}};
  const ReshardPlan got = plan_reshard(tensors, options);
  CHECK(got.bytes_moved == got.bytes_total);
  CHECK(got.renumbering->bytes_moved == 0);
  CHECK(got.renumbering->device_of_rank == std::vector<i64>{3, 0, 1, 2});
}

TEST_CASE("from files everything is read, nobody sends, and there is nothing to renumber") {
  const Shape shape{6};
  const auto file = index::HolderSet::whole(shape);
  const layout::Layout to = cut(shape, 3);
  plan::TrafficOptions options;
  options.to_devices = 3;
  const std::vector<ReshardTensor> tensors{{"t", 8, {&file, {}}, holders_of(to)}};
  const ReshardPlan got = plan_reshard(tensors, options);
  CHECK(got.from_storage);
  CHECK(got.bytes_moved == 6);
  CHECK(got.bytes_kept == 0);
  CHECK(got.renumbering == std::nullopt);
  for (const auto& rank : got.per_rank) CHECK(rank.send == 0);
}

TEST_CASE("the gap is what is moved beyond the bound, and 0 when nothing has to move") {
  ReshardPlan plan;
  CHECK(plan.gap() == 0);
  plan.bytes_moved = 15;
  plan.lower_bound = 10;
  CHECK(plan.gap() == doctest::Approx(0.5));
}

TEST_CASE("a tensor that nobody has all of is named") {
  const Shape shape{8};
  const std::vector<i64> ranks{0};
  const auto half = index::HolderSet::of(
      shape, std::vector<index::Region>(1, {index::AxisMap::slice(8, {0, 4})}));
  const layout::Layout to = cut(shape, 2);
  plan::TrafficOptions options;
  options.from_devices = options.to_devices = 2;
  const std::vector<ReshardTensor> tensors{{"lost", 16, {&half, ranks}, holders_of(to)}};
  const auto error = testing::error_of([&] { return plan_reshard(tensors, options); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kCoverage);
  CHECK(error->tensor_name() == "lost");
}

TEST_CASE("the peak of a device is at least what it has before and after") {
  CHECK(rc::check("peaks", [] {
    const ReshardPlan got = any_case().plan();
    RC_ASSERT(got.peak_bytes >= got.peak_bound);
    RC_ASSERT(got.levels.size() == got.groups.size());
    i64 highest = got.begin_bytes;
    for (const plan::MemoryLevel& level : got.levels)
      highest = std::max({highest, level.first, level.last, level.after});
    RC_ASSERT(highest == got.peak_bytes);
    RC_ASSERT(got.per_rank[static_cast<size_t>(got.peak_rank)].peak_bytes == got.peak_bytes);
    std::vector<size_t> order = got.order;
    std::sort(order.begin(), order.end());
    for (size_t g = 0; g < order.size(); ++g) RC_ASSERT(order[g] == g);
    RC_ASSERT(order.size() == got.groups.size());
  }));
}

}  // namespace
