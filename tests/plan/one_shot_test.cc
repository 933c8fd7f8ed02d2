#include "lib/plan/collective/one_shot.h"

#include <doctest/doctest.h>

#include "lib/plan/collective/collective_time.h"
#include "lib/plan/collective/profile_list.h"

using namespace shardtool;
using doctest::Approx;
using plan::CollectiveOp;
using plan::find_profile;
using plan::us_in_step;

namespace {

constexpr i64 kMiB = i64{1} << 20;

double reduced(i64 devices, i64 bytes, const char* profile = "h100-sxm") {
  return us_in_step({CollectiveOp::kAllReduce, {devices, 1}, bytes}, find_profile(profile));
}

}  // namespace

TEST_CASE("a one-shot all_reduce takes a latency and the buffers of all other devices") {
  const auto links = std::get<plan::Links>(find_profile("h100-sxm").fabric);
  CHECK(reduced(8, 0) == *plan::time_with({CollectiveOp::kAllReduce, {8, 1}, 0}, links, 0,
                                          plan::Algorithm::kRing, plan::Protocol::kLowLatency));
  // 450 GB/s, 0.55 of them
  CHECK(reduced(8, kMiB) - reduced(8, 0) == Approx(7 * kMiB / (0.55 * 450e3)));
  CHECK(reduced(2, kMiB) - reduced(2, 0) == Approx(kMiB / (0.55 * 450e3)));
  CHECK(reduced(1, kMiB) == 0);
}

// Llama-3.1-70B, 128 sequences: what makes eight devices slower than four in measured rows.
TEST_CASE("many sequences are reduced faster on four devices than on eight, unlike by NCCL") {
  const i64 bytes = i64{128} * 8192 * 2;
  const auto by_nccl =
      plan::time_of({CollectiveOp::kAllReduce, {8, 1}, bytes}, find_profile("h100-sxm"));
  CHECK(reduced(8, bytes) > 1.5 * by_nccl.us);
  CHECK(reduced(8, bytes) > 2 * reduced(4, bytes));
}

TEST_CASE("other collectives, large buffers, nodes and buses take their ordinary time") {
  const auto same = [](const plan::Collective& collective, const char* profile) {
    const auto hardware = find_profile(profile);
    CHECK(us_in_step(collective, hardware) == plan::time_of(collective, hardware).us);
  };
  same({CollectiveOp::kAllGather, {8, 1}, kMiB}, "h100-sxm");
  same({CollectiveOp::kAllReduce, {8, 1}, plan::kMostOneShotBytes + 1}, "h100-sxm");
  same({CollectiveOp::kAllReduce, {16, 2}, kMiB}, "h100-sxm");
  same({CollectiveOp::kAllReduce, {4, 1}, kMiB}, "l40s");
  same({CollectiveOp::kAllReduce, {4, 1}, kMiB}, "tpu-v5e");
}
