#include "lib/plan/collective/collective.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/support/generators.h"
#include "tests/support/throws.h"

using namespace shardtool;
using plan::Collective;
using plan::CollectiveOp;
using enum plan::CollectiveOp;

namespace {

mesh::Mesh mesh_of(std::string_view text) {
  return mesh::parse_mesh(text);
}

plan::Group group(std::string_view mesh, mesh::Over over, i64 domain) {
  return plan::group_along(mesh_of(mesh), over, domain);
}

}  // namespace

TEST_CASE("what a device sends is its share of what the op must move, rounded up") {
  CHECK(rc::check("wire = the exact share where it divides; less than a byte more, else", [] {
    const i64 n = *gen::between(1, 64);
    const i64 each = *gen::between(0, 1'000'000);
    const auto op = *rc::gen::element(kAllGather, kReduceScatter, kAllToAll, kAllReduce);
    const i64 times = op == kAllReduce ? 2 : 1;
    const Collective even{op, {n, 1}, each * n};
    RC_ASSERT(plan::wire_bytes(even) == times * each * (n - 1));
    const i64 odd_bytes = *gen::between(0, 1'000'000);
    const i64 odd = plan::wire_bytes({op, {n, 1}, odd_bytes});
    RC_ASSERT(odd * n >= times * odd_bytes * (n - 1));
    RC_ASSERT(((odd - 1) * n < times * odd_bytes * (n - 1) || odd == 0));
  }));
}

TEST_CASE("the factors between payload and bus of nccl-tests") {
  // doc/PERFORMANCE.md of NVIDIA/nccl-tests
  CHECK(plan::bus_factor(kAllReduce, 2) == 1);
  CHECK(plan::bus_factor(kAllReduce, 4) == 1.5);
  CHECK(plan::bus_factor(kAllReduce, 8) == 1.75);
  for (const CollectiveOp op : {kAllGather, kReduceScatter, kAllToAll}) {
    CHECK(plan::bus_factor(op, 2) == 0.5);
    CHECK(plan::bus_factor(op, 4) == 0.75);
    CHECK(plan::bus_factor(op, 8) == 0.875);
  }
  CHECK(plan::bus_factor(kBroadcast, 8) == 1);
  CHECK(plan::bus_factor(kReduce, 8) == 1);
  CHECK(plan::bus_factor(kAllReduce, 1) == 0);
}

TEST_CASE("an all_reduce of Llama-3-70B's decode on eight devices sends 28,672 bytes") {
  // 8,192 bf16 numbers; two per layer, 80 layers: 4,587,520 bytes per token and device
  const i64 sent = plan::wire_bytes({kAllReduce, {8, 1}, 8192 * 2});
  CHECK(sent == 28'672);
  CHECK(160 * sent == 4'587'520);
}

TEST_CASE("bytes agree with the cost functions of other planners") {
  // torch DTensor, _collective_utils.py: 87.7 GiB/s and 6.6 us + 0.6 us per step inside a node,
  // 0.22 of it and 2.7 us across; 1 GiB
  const auto dtensor = [](CollectiveOp op, i64 n, double step_us, double gib_per_s) {
    const double gib = plan::bus_factor(op, n);
    const double steps = static_cast<double>(op == kAllReduce ? 2 * (n - 1) : n - 1);
    return 6.6 + steps * step_us + gib / gib_per_s * 1e6;
  };
  CHECK(dtensor(kAllGather, 8, 0.6, 87.7) == doctest::Approx(9987.99).epsilon(1e-6));
  CHECK(dtensor(kAllReduce, 8, 0.6, 87.7) == doctest::Approx(19969.39).epsilon(1e-6));
  CHECK(dtensor(kAllGather, 2, 2.7, 87.7 * 0.22) == doctest::Approx(25924.09).epsilon(1e-6));

  // Alpa, logical device mesh with alpha = beta = 1: 100 bytes over four devices, with its
  // tie-breaking constants, and an all_to_all of the local quarter that it doubles (n / 2)
  const auto alpa = [](CollectiveOp op, i64 payload) {
    return 1 + static_cast<double>(payload) * plan::bus_factor(op, 4);
  };
  CHECK(alpa(kAllGather, 100) + 0.1 == doctest::Approx(76.1));
  CHECK(alpa(kAllReduce, 100) + 0.01 == doctest::Approx(151.01));
  CHECK(alpa(kReduceScatter, 100) + 0.001 == doctest::Approx(76.001));
  CHECK(2 * (alpa(kAllToAll, 25) - 1) + 1.001 == doctest::Approx(38.501));
}

TEST_CASE("a device sends its payload once in a broadcast") {
  CHECK(plan::wire_bytes({kBroadcast, {8, 1}, 12}) == 12);
}

TEST_CASE("a number of bytes above 64 bits is refused") {
  CHECK_ERROR(kLimit, plan::wire_bytes({kAllReduce, {8, 1}, std::numeric_limits<i64>::max()}));
}

TEST_CASE("expected destinations of uniform routing") {
  // n (1 - C(E - E/n, k) / C(E, k)), computed in exact integers
  CHECK(plan::expected_destinations(256, 8, 8) == doctest::Approx(5.2947).epsilon(1e-5));
  CHECK(plan::expected_destinations(256, 8, 64) == doctest::Approx(7.6758).epsilon(1e-5));
  CHECK(plan::expected_destinations(128, 4, 8) == doctest::Approx(3.3425).epsilon(1e-5));
  CHECK(plan::expected_destinations(8, 2, 1) == 1);
  CHECK(plan::expected_destinations(8, 8, 8) == 8);
}

TEST_CASE("tokens go through the network once per node of their experts") {
  CHECK(rc::check("at most what goes to each device; the same with one device per node", [] {
    const i64 nodes = *gen::between(1, 16);
    const i64 inside = *gen::between(1, 8);
    const i64 experts = *gen::between(1, 300);
    const i64 top_k = *gen::between(1, std::min<i64>(experts, 16));
    const i64 bytes = *gen::between(0, 1'000'000);
    const i64 n = nodes * inside;
    const Collective sent = plan::dispatch(experts, top_k, {n, nodes}, bytes);
    RC_ASSERT(sent.op == kAllToAll);
    RC_ASSERT(sent.network_bytes.has_value() == (nodes > 1));
    if (nodes == 1) return;
    // Each token in its own device's part of the others, to a rounded byte.
    const i64 to_each = ceil_div(sent.payload_bytes * (nodes - 1), nodes);
    RC_ASSERT(*sent.network_bytes <= to_each + 1);
    if (inside == 1) RC_ASSERT(*sent.network_bytes >= to_each - 1);
  }));
  // 8 of 256 experts are on 3.6142 of 4 nodes: 4 (1 - C(192, 8) / C(256, 8)), in exact integers
  CHECK(plan::dispatch(256, 8, {32, 4}, 1'000'000).network_bytes == 2'710'661);
}

TEST_CASE("groups know how many domains they span") {
  using plan::Group;
  CHECK(group("dp=2,tp=8", {{"tp"}}, 8) == Group{8, 1});
  CHECK(group("dp=2,tp=8", {{"dp"}}, 8) == Group{2, 2});
  CHECK(group("tp=16", {{"tp"}}, 8) == Group{16, 2});
  CHECK(group("dp=2,tp=8", {{"dp"}, {"tp"}}, 8) == Group{16, 2});
  CHECK(group("tp=16", {{"tp", 1, 2}}, 8) == Group{2, 2});  // tp:(1)2: the halves
  CHECK(group("tp=16", {{"tp", 2, 8}}, 8) == Group{8, 1});  // tp:(2)8: inside one half
  CHECK(group("dp=2,tp=6", {{"tp"}}, 8) == Group{6, 1});    // two devices of each domain idle
  CHECK(group("dp=2,tp=6", {{"dp"}}, 8) == Group{2, 2});
  CHECK(group("dp=7,tp=3", {{"dp"}}, 8) == Group{7, 4});  // two blocks in each
  CHECK(group("tp=12", {{"tp"}}, 8) == Group{12, 2});     // no block fits: in order
  CHECK(group("pp=8,ep=32", {{"ep"}}, 72) == Group{32, 1});
  CHECK(group("tp=8", {}, 8) == Group{1, 1});
}

TEST_CASE("names of collectives are read back") {
  for (const CollectiveOp op :
       {kAllGather, kReduceScatter, kAllReduce, kAllToAll, kBroadcast, kReduce, kPermute}) {
    CHECK(plan::parse_collective_op(to_string(op)) == op);
  }
  CHECK_FALSE(plan::parse_collective_op("gather"));
}
