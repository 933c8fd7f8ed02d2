#include "lib/plan/collective/collective_time.h"

#include <doctest/doctest.h>

#include "lib/plan/collective/profile_list.h"
#include "tests/support/generators.h"

using namespace shardtool;
using plan::Algorithm;
using plan::Collective;
using plan::CollectiveOp;
using plan::find_profile;
using plan::Protocol;
using enum plan::CollectiveOp;
using doctest::Approx;

namespace {

double us_of(CollectiveOp op, plan::Group group, i64 bytes, std::string_view profile) {
  return plan::time_of({op, group, bytes}, find_profile(profile)).us;
}

double latency(CollectiveOp op, Algorithm algorithm, Protocol protocol) {
  const auto h100 = std::get<plan::Links>(find_profile("h100-sxm").fabric);
  return plan::time_with({op, {8, 1}, 0}, h100, 50, algorithm, protocol).value();
}

double bus_gb_per_s(CollectiveOp op, std::string_view profile) {
  constexpr i64 kBytes = 512 << 20;
  return static_cast<double>(kBytes) * plan::bus_factor(op, 8) /
         us_of(op, {8, 1}, kBytes, profile) / 1e3;
}

}  // namespace

TEST_CASE("more bytes never take less time, and one device takes none") {
  CHECK(rc::check("time_of is monotone in the payload", [] {
    const auto names = plan::profile_names();
    const auto profile = find_profile(*rc::gen::elementOf(names));
    const auto op =
        *rc::gen::element(kAllGather, kReduceScatter, kAllReduce, kAllToAll, kBroadcast, kPermute);
    const i64 nodes = *gen::between(1, 4);
    const plan::Group group{nodes * *gen::between(1, 8), nodes};
    const i64 bytes = *gen::between(0, 1 << 30);
    const i64 more = bytes + *gen::between(0, 1 << 30);
    const double less_us = plan::time_of({op, group, bytes}, profile).us;
    RC_ASSERT(less_us <= plan::time_of({op, group, more}, profile).us);
    RC_ASSERT((group.devices == 1) == (less_us == 0));
  }));
}

TEST_CASE("latencies of NCCL's model: eight devices of one node") {
  // src/graph/tuning.cc; Ring Simple 56.0 and Tree Simple 64.4 also in autoparallel's tests
  CHECK(latency(kAllReduce, Algorithm::kRing, Protocol::kLowLatency) == Approx(15.0));
  CHECK(latency(kAllReduce, Algorithm::kRing, Protocol::kLowLatency128) == Approx(40.6));
  CHECK(latency(kAllReduce, Algorithm::kRing, Protocol::kSimple) == Approx(56.0));
  CHECK(latency(kAllGather, Algorithm::kRing, Protocol::kLowLatency) == Approx(10.8));
  CHECK(latency(kAllGather, Algorithm::kRing, Protocol::kSimple) == Approx(32.2));
  CHECK(latency(kAllReduce, Algorithm::kTree, Protocol::kSimple) == Approx(64.4));
}

TEST_CASE("bandwidths at 512 MiB are within a quarter of the measured ones (D31)") {
  // NCCL on eight devices, fp16: the tables of ai-dynamo/aiconfigurator
  struct Row {
    const char* profile;
    double all_reduce, all_gather, reduce_scatter, all_to_all;
  };
  for (const Row& row : {Row{"h100-sxm", 445, 335, 336, 315}, Row{"h200-sxm", 460, 337, 337, 311},
                         Row{"a100-80-sxm", 222, 205, 213, 203},
                         Row{"b200-sxm", 704, 617, 613, 563}, Row{"l40s", 1.4, 1.2, 1.7, 2.0}}) {
    CAPTURE(row.profile);
    CHECK(bus_gb_per_s(kAllReduce, row.profile) == Approx(row.all_reduce).epsilon(0.25));
    CHECK(bus_gb_per_s(kAllGather, row.profile) == Approx(row.all_gather).epsilon(0.25));
    CHECK(bus_gb_per_s(kReduceScatter, row.profile) == Approx(row.reduce_scatter).epsilon(0.25));
    CHECK(bus_gb_per_s(kAllToAll, row.profile) == Approx(row.all_to_all).epsilon(0.25));
  }
}

TEST_CASE("small and large messages on H100 are within the stated band of the measured ones") {
  // aiconfigurator: 16 KiB all_reduce 18.98 us, 128 MiB 578.7 us; 512 B: 15.6, 10.1, 10.2, 7.4 us
  const auto close = [](double us) { return Approx(us).epsilon(plan::kTimeErrorBand); };
  CHECK(us_of(kAllReduce, {8, 1}, 16 << 10, "h100-sxm") == close(18.98));
  CHECK(us_of(kAllReduce, {8, 1}, 128 << 20, "h100-sxm") == close(578.7));
  CHECK(us_of(kAllReduce, {8, 1}, 512, "h100-sxm") == close(15.6));
  CHECK(us_of(kAllGather, {8, 1}, 512, "h100-sxm") == close(10.1));
  CHECK(us_of(kReduceScatter, {8, 1}, 512, "h100-sxm") == close(10.2));
  CHECK(us_of(kAllToAll, {8, 1}, 512, "h100-sxm") == close(7.4));
  // bytes over bandwidth only: 300 times too little
  CHECK(us_of(kAllReduce, {8, 1}, 16 << 10, "h100-sxm") > 200 * 16384.0 * 1.75 / 450e3);
}

TEST_CASE("gathers over levels of switches") {
  // scaling-book gpus.md: pop quiz 1; quiz 2 question 3; its table of levels; quiz 4 question 5
  CHECK(plan::gather_seconds(1024.0 * 16384 * 2, {{8, 450e9}}) == Approx(65.2e-6).epsilon(1e-3));
  CHECK(1024.0 * 16384 * 2 / 450e9 == Approx(74.6e-6).epsilon(1e-3));
  CHECK(plan::gather_seconds(4096.0 * 65536 * 2, {{8, 450e9}}) == Approx(1.044e-3).epsilon(1e-3));
  CHECK(1 / plan::gather_seconds(1, {{8, 450e9}}) == Approx(514.3e9).epsilon(1e-4));
  CHECK(1 / plan::gather_seconds(1, {{32, 400e9}}) == Approx(412.9e9).epsilon(1e-4));
  CHECK(1 / plan::gather_seconds(1, {{4, 12800e9}}) == Approx(17067e9).epsilon(1e-4));
  CHECK(1 / plan::gather_seconds(1, {{8, 450e9}, {32, 400e9}, {4, 12800e9}}) ==
        Approx(412.9e9).epsilon(1e-4));
  CHECK(1 / plan::gather_seconds(1, {{8, 450e9}, {2, 400e9}}) == Approx(514.3e9).epsilon(1e-4));
}

TEST_CASE("collectives of a torus") {
  // scaling-book sharding.md, question 2 (v4p, 90 GB/s both ways: 45 one way), corrected editions
  const plan::Torus v4p{64, 3, 45, 1, 4};
  constexpr i64 kArray = 1024 * 4096 * 2;
  CHECK(plan::time_on({kAllGather, {4, 1}, kArray / 4}, v4p, 1) == Approx(23.3).epsilon(1e-3));
  CHECK(plan::time_on({kAllGather, {16, 1}, kArray}, v4p, 2) == Approx(46.6).epsilon(1e-3));
  CHECK(plan::time_on({kAllReduce, {4, 1}, kArray / 16}, v4p, 1) == Approx(11.65).epsilon(1e-3));
  // pop quiz 2: v5e, an axis of four, with and without wraparound; 1 us per hop
  constexpr i64 kSecond = 2048 * 8192 * 2;
  const plan::Torus wraps{16, 2, 45, 1, 4};
  const plan::Torus line{16, 2, 45, 1, 16};
  CHECK(plan::time_on({kAllGather, {4, 1}, kSecond}, wraps, 1) == Approx(373).epsilon(1e-3));
  CHECK(plan::time_on({kAllGather, {4, 1}, kSecond}, line, 1) == Approx(559).epsilon(1e-3));
  CHECK(plan::time_on({kAllGather, {4, 1}, 64}, wraps, 1) == 2);
  CHECK(plan::time_on({kAllGather, {4, 1}, 64}, line, 1) == 3);
  // question 10: an all_to_all is a quarter of the gather of the whole array
  CHECK(plan::time_on({kAllToAll, {4, 1}, kSecond / 4}, wraps, 1) ==
        Approx(373.0 / 4).epsilon(1e-3));
}

TEST_CASE("across nodes the adapters count, and the network's latency") {
  // Two nodes of eight with 50 GB/s per device: 400 GB/s per node; halves cross, so nodes bound it.
  const double us = us_of(kAllGather, {16, 2}, 1 << 30, "h100-sxm");
  CHECK(us == Approx((1 << 30) * 7.0 / 8 / 370.8e3).epsilon(0.03));
  // One device per node: its own adapter only.
  CHECK(us_of(kAllGather, {2, 2}, 1 << 30, "h100-sxm") ==
        Approx((1 << 30) * 0.5 / 50e3).epsilon(0.02));
  CHECK(us_of(kAllReduce, {16, 2}, 512, "h100-sxm") > us_of(kAllReduce, {16, 1}, 512, "h100-sxm"));
}

TEST_CASE("what a node hands on does not pass its adapters again") {
  const auto h100 = find_profile("h100-sxm");
  const Collective once = plan::dispatch(256, 8, {32, 4}, 64 << 20);
  const Collective each{kAllToAll, once.group, once.payload_bytes};
  // 2.711 and 5.450 copies of 64 MiB at 50 GB/s, beside latencies of less than 0.1 ms
  CHECK(plan::time_of(once, h100).us == Approx(3638).epsilon(0.02));
  CHECK(plan::time_of(each, h100).us == Approx(7315).epsilon(0.02));
}

TEST_CASE("a measured table decides where the profile has one, log-log between its points") {
  auto profile = find_profile("h100-sxm");
  profile.timings = {{kAllReduce, 8, 1, {{1 << 10, 10}, {1 << 20, 40}}}};
  const auto us = [&profile](i64 bytes) {
    return plan::time_of({kAllReduce, {8, 1}, bytes}, profile).us;
  };
  CHECK(us(1) == 10);
  CHECK(us(1 << 10) == 10);
  CHECK(us(1 << 15) == Approx(20));  // halfway in log bytes: the geometric mean
  CHECK(us(1 << 20) == Approx(40));
  CHECK(us(1 << 22) == Approx(160));
  CHECK(plan::time_of({kAllReduce, {8, 1}, 1}, profile).algorithm == Algorithm::kMeasured);
  CHECK(plan::time_of({kAllReduce, {4, 1}, 1}, profile).algorithm != Algorithm::kMeasured);
}

TEST_CASE("modelled times are printed with two digits") {
  CHECK(plan::format_modelled_us(0) == "0.0 us");
  CHECK(plan::format_modelled_us(1.04) == "1.0 us");
  CHECK(plan::format_modelled_us(18.98) == "19 us");
  CHECK(plan::format_modelled_us(578.7) == "580 us");
  CHECK(plan::format_modelled_us(999.6) == "1.0 ms");
  CHECK(plan::format_modelled_us(5270) == "5.3 ms");
  CHECK(plan::format_modelled_us(92600) == "93 ms");
  CHECK(plan::format_modelled_us(1.46e6) == "1.5 s");
  CHECK(plan::two_digits(0.5712) == 0.57);
  CHECK(plan::two_digits(7.04) == 7);
  CHECK(plan::two_digits(123456) == 120000);
}

TEST_CASE("processes that send messages pay a latency per step and the wire bytes") {
  // 2 (n - 1) steps around the ring, D1's factors of the bytes; 1 GB/s is 1,000 bytes per us
  const plan::Messages messages{4, 10, 1};
  const auto us = [&](CollectiveOp op) {
    return plan::time_of_messages({op, {4, 1}, 4000}, messages);
  };
  CHECK(us(kAllReduce) == Approx(6 * 10 + 6));
  CHECK(us(kAllGather) == Approx(3 * 10 + 3));
  CHECK(us(kPermute) == Approx(10 + 4));
  CHECK(plan::time_of_messages({kAllReduce, {1, 1}, 4000}, messages) == 0);
}
