#include "lib/engine/run/fabric.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <mutex>

#include "kernels/field/field.h"
#include "lib/comm/embedded.h"
#include "tests/support/generators.h"

namespace shardtool::engine {
namespace {

using index::AxisMap;
using kernels::Field;

constexpr i64 kTokens = 3;

/// Device r's random part of a value of `width` features, cut over tp.
Part<Field> cut_part(const mesh::Mesh& mesh, i64 rank, i64 width) {
  const i64 parts = mesh.axis("tp").size;
  const i64 at = mesh.index_on("tp", rank);
  Part<Field> part = empty_part<Field>(
      AxisMap::slice(width, {width * at / parts, width * (at + 1) / parts}), kTokens);
  for (i64 t = 0; t < kTokens; ++t) {
    for (i64 i = 0; i < part.width(); ++i) {
      part.row(t)[i] = kernels::field_random(static_cast<std::uint64_t>(t),
                                             static_cast<std::uint64_t>(*part.features(i)));
    }
  }
  return part;
}

/// Device r's summand of a value.
Part<Field> summand(i64 rank, i64 width) {
  Part<Field> part = empty_part<Field>(AxisMap::identity(width), kTokens);
  for (size_t i = 0; i < part.data.size(); ++i) {
    part.data[i] = kernels::field_random(static_cast<std::uint64_t>(rank), i);
  }
  return part;
}

model::Exchange over_tp(plan::Move move, i64 width) {
  return {move, {{"tp"}}, width};
}

/// Results of all devices after `play` over this number of processes; each runs its own devices.
Placed<Field> played(const mesh::Mesh& mesh, int processes, Counted& counted,
                     const std::function<Placed<Field>(Fabric&)>& play) {
  Placed<Field> all;
  std::mutex mutex;
  comm::run_embedded(processes, [&](comm::Communicator& comm) {
    Fabric fabric(mesh, &comm);
    const Placed<Field> mine = play(fabric);
    const std::lock_guard lock(mutex);
    all.insert(mine.begin(), mine.end());
    counted = fabric.counts().begin()->second;
  });
  return all;
}

/// Value of every device after the move, over this number of processes.
Placed<Field> moved(const mesh::Mesh& mesh, const model::Exchange& exchange, int processes,
                    Counted& counted) {
  return played(mesh, processes, counted, [&](Fabric& fabric) {
    Placed<Field> mine;
    for (const i64 rank : fabric.own()) {
      const bool sums = exchange.move == plan::Move::kAllReduce;
      mine[rank] =
          sums ? summand(rank, exchange.elements) : cut_part(mesh, rank, exchange.elements);
    }
    kernels::Workbench bench;
    fabric.exchange(exchange, kTokens, mine, bench);
    return mine;
  });
}

TEST_CASE("any number of processes moves the same numbers, and counts the same") {
  CHECK(rc::check("fabric", [] {
    const i64 dp = *rc::gen::inRange<i64>(1, 3);
    const i64 tp = *rc::gen::inRange<i64>(1, 4);
    const mesh::Mesh mesh({{"dp", dp}, {"tp", tp}});
    const i64 width = *rc::gen::inRange<i64>(1, 9);
    const auto move = *rc::gen::element(plan::Move::kAllReduce, plan::Move::kAllGather);
    const int processes = *rc::gen::inRange(1, 5);
    Counted alone;
    Counted shared;
    const auto expected = moved(mesh, over_tp(move, width), 1, alone);
    const auto found = moved(mesh, over_tp(move, width), processes, shared);
    RC_ASSERT(std::ssize(found) == mesh.size());
    RC_ASSERT(alone.count == 1);
    RC_ASSERT(shared.count == 1);
    RC_ASSERT(alone.elements == width * kTokens);
    RC_ASSERT(shared.elements == width * kTokens);
    for (const auto& [rank, part] : found) {
      RC_ASSERT(part.features == AxisMap::identity(width));
      RC_ASSERT(part.data == expected.at(rank).data);
      if (move == plan::Move::kAllGather) continue;
      Part<Field> sum = empty_part<Field>(AxisMap::identity(width), kTokens);
      for (i64 other = 0; other < mesh.size(); ++other) {
        if (mesh.index_on("dp", other) != mesh.index_on("dp", rank)) continue;
        const auto one = summand(other, width);
        for (size_t i = 0; i < sum.data.size(); ++i) sum.data[i] += one.data[i];
      }
      RC_ASSERT(part.data == sum.data);
    }
  }));
}

/// Values that the devices of stage 1 receive from stage 0, over this number of processes.
Placed<Field> handed_over(const mesh::Mesh& mesh, i64 width, int processes, Counted& counted) {
  std::vector<i64> senders, receivers;
  for (i64 rank = 0; rank < mesh.size(); ++rank) {
    const i64 stage = mesh.index_on("pp", rank);
    if (stage == 0) senders.push_back(rank);
    if (stage == 1) receivers.push_back(rank);
  }
  return played(mesh, processes, counted, [&](Fabric& fabric) {
    Placed<Field> mine;
    for (const i64 rank : fabric.own()) {
      if (std::ranges::binary_search(senders, rank)) mine[rank] = summand(rank, width);
    }
    const model::Exchange handoff{plan::Move::kPermute, {{"pp"}}, width * mesh.axis("pp").size};
    return fabric.hand_over(handoff, senders, receivers, mine);
  });
}

TEST_CASE("a stage receives from the device that differs from it only in the stage") {
  CHECK(rc::check("hand_over", [] {
    const i64 dp = *rc::gen::inRange<i64>(1, 3);
    const i64 pp = *rc::gen::inRange<i64>(2, 4);
    const i64 tp = *rc::gen::inRange<i64>(1, 4);
    const mesh::Mesh mesh({{"dp", dp}, {"pp", pp}, {"tp", tp}});
    const i64 width = *rc::gen::inRange<i64>(1, 9);
    Counted counted;
    const auto received = handed_over(mesh, width, *rc::gen::inRange(1, 6), counted);
    RC_ASSERT(std::ssize(received) == dp * tp);
    for (const auto& [rank, part] : received) {
      RC_ASSERT(mesh.index_on("pp", rank) == 1);
      RC_ASSERT(part.data == summand(rank - tp, width).data);
    }
    RC_ASSERT(counted.count == 1);
    RC_ASSERT(counted.elements == width * kTokens);
  }));
}

TEST_CASE("a device to which no device of the stage before belongs is an error") {
  const mesh::Mesh mesh({{"pp", 2}, {"tp", 2}});
  Fabric fabric(mesh, nullptr);
  const std::vector<i64> senders{0}, receivers{2, 3};
  const model::Exchange handoff{plan::Move::kPermute, {{"pp"}}, 8};
  CHECK_THROWS_AS(fabric.hand_over(handoff, senders, receivers, Placed<Field>{{0, summand(0, 4)}}),
                  Error);
}

TEST_CASE("devices that would add up different features are an error, not a sum") {
  const mesh::Mesh mesh({{"tp", 2}});
  Fabric fabric(mesh, nullptr);
  Placed<Field> value{{0, summand(0, 4)}, {1, summand(1, 5)}};
  kernels::Workbench bench;
  CHECK_THROWS_AS(fabric.exchange(over_tp(plan::Move::kAllReduce, 4), kTokens, value, bench),
                  Error);
  CHECK_THROWS_AS(fabric.exchange(over_tp(plan::Move::kAllToAll, 4), kTokens, value, bench), Error);
}

}  // namespace
}  // namespace shardtool::engine
