#include "lib/plan/reshard_time.h"

#include <doctest/doctest.h>

#include "lib/plan/collective/profile_list.h"
#include "tests/plan/one_axis.h"

using namespace shardtool;
using doctest::Approx;
using plan::cut;
using plan::holders_of;
using plan::ReshardPlan;

namespace {

/// 1 GB/s is 1,000 bytes per us; a request takes 9 us in addition to its bytes.
plan::HardwareProfile slow_machine() {
  plan::HardwareProfile profile;
  profile.fabric = plan::Messages{2, 5, 1};
  profile.network_gb_per_s = 0.5;
  profile.storage = plan::Storage{{{1000, 10}, {1'000'000, 1000}}, {{1000, 20}, {1'000'000, 2000}}};
  return profile;
}

/// A row of 8,000 elements of 2 bytes.
ReshardPlan plan_of(const layout::Layout& from, const layout::Layout& to, i64 from_devices) {
  const plan::Holders having =
      from_devices == 0 ? plan::Holders{&from.holders(), {}} : holders_of(from);
  const std::vector<plan::ReshardTensor> tensors{{"t", 16, having, holders_of(to)}};
  plan::TrafficOptions options;
  options.from_devices = from_devices;
  options.to_devices = 4;
  options.node_size = 2;
  options.most_gap = 0;
  return plan_reshard(tensors, options);
}

}  // namespace

TEST_CASE("between devices the busiest link or adapter counts") {
  // Halves of 8,000 bytes to quarters: 0 sends 4,000 to 1 inside the node, 1 sends 4,000 each to 2
  // and 3 in the other: 8,000 bytes at 0.5 GB/s, and the 5 us of a message.
  const ReshardPlan plan = plan_of(cut({8000}, 2), cut({8000}, 4), 2);
  const auto time = time_of(plan, slow_machine(), 2);
  CHECK(time.network_us.value() == Approx(5 + 16).epsilon(1e-3));
  CHECK_FALSE(time.load_us);
  // Through files 16,000 bytes are read and written.
  CHECK(time.read_us.value() == Approx(16));
  CHECK(time.write_us.value() == Approx(32));
  CHECK(time.files_us().value() == Approx(32));
}

TEST_CASE("from files the node that reads most counts") {
  const ReshardPlan plan = plan_of(cut({8000}, 1), cut({8000}, 4), 0);
  const auto time = time_of(plan, slow_machine(), 2);
  CHECK_FALSE(time.network_us);
  CHECK(time.load_us.value() == Approx(8 + 2 * 9));
}

TEST_CASE("what moves nothing takes no time, and what is not known of a profile has none") {
  const ReshardPlan same = plan_of(cut({8000}, 4), cut({8000}, 4), 4);
  CHECK_FALSE(time_of(same, slow_machine(), 2).network_us);
  const ReshardPlan plan = plan_of(cut({8000}, 2), cut({8000}, 4), 2);
  CHECK_FALSE(time_of(plan, plan::find_profile("h100-sxm"), 2).files_us());
}

TEST_CASE("a gap is worth reading up to what a request costs") {
  CHECK(plan::cheapest_gap(*slow_machine().storage) == 9000);
}
