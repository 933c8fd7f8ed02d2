#include "lib/plan/collective/traffic.h"

#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <set>

#include "tests/plan/one_axis.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

using namespace shardtool;
using plan::cut;
using plan::Holders;
using plan::holders_of;
using plan::Traffic;
using plan::traffic;
using plan::Transfer;
using plan::whole_on;

namespace {

constexpr int kBits = 16;
constexpr i64 kBytes = 2;

/// Global elements of every rank, by definition.
using Elements = std::map<i64, std::set<i64>>;

std::set<i64> elements_of(const index::Region& region) {
  std::set<i64> elements{0};
  for (const index::AxisMap& map : region) {
    std::set<i64> longer;
    for (const i64 outer : elements) {
      for (i64 local = 0; local < map.local_size(); ++local) {
        if (const auto global = map(local)) longer.insert(outer * map.global_size() + *global);
      }
    }
    elements = std::move(longer);
  }
  return elements;
}

Elements elements_of(const layout::Layout& layout) {
  Elements elements;
  for (const i64 rank : layout.ranks()) elements[rank] = elements_of(*layout.region(rank));
  return elements;
}

std::set<i64> both(const std::set<i64>& a, const std::set<i64>& b) {
  std::set<i64> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                        std::inserter(common, common.begin()));
  return common;
}

/// Computes sums over elements and ranks.
Traffic by_definition(const layout::Layout& from, const layout::Layout& to, i64 node_size) {
  Elements have = elements_of(from);
  const Elements need = elements_of(to);
  const i64 whole = element_count(from.shape()).value();
  Traffic sums;
  std::map<i64, std::set<i64>> in_node;  // elements on some device of a node
  for (const auto& [rank, elements] : have)
    in_node[rank / node_size].insert(elements.begin(), elements.end());
  std::map<i64, std::set<i64>> entering;
  std::set<i64> wanted_once;
  for (const auto& [rank, elements] : need) {
    const auto kept = static_cast<i64>(both(elements, have[rank]).size());
    const auto wanted = static_cast<i64>(elements.size());
    wanted_once.insert(elements.begin(), elements.end());
    sums.total += wanted * kBytes;
    sums.kept += kept * kBytes;
    sums.moved += (wanted - kept) * kBytes;
    if (wanted > kept) sums.gather_first += (whole - static_cast<i64>(have[rank].size())) * kBytes;
    for (const i64 element : elements) {
      if (in_node[rank / node_size].count(element) == 0) entering[rank / node_size].insert(element);
    }
  }
  sums.wanted_once = static_cast<i64>(wanted_once.size()) * kBytes;
  for (const auto& [node, elements] : entering)
    sums.inter_node += static_cast<i64>(elements.size()) * kBytes;
  return sums;
}

i64 sum_of(const std::vector<Transfer>& transfers) {
  return std::accumulate(transfers.begin(), transfers.end(), i64{0},
                         [](i64 sum, const Transfer& t) { return sum + t.bytes; });
}

Traffic measure(const layout::Layout& from, const layout::Layout& to, i64 node_size = 8) {
  return traffic(holders_of(from), holders_of(to), kBits, node_size);
}

bool has_no_replicas(const layout::Layout& layout) {
  i64 held = 0;
  for (const auto& [rank, elements] : elements_of(layout))
    held += static_cast<i64>(elements.size());
  return held == element_count(layout.shape()).value();
}

TEST_CASE("sums of a move are those of its elements, one by one, and its bound is reached") {
  CHECK(rc::check("moved, kept, gathered and entering bytes", [] {
    const Shape shape = *gen::shape();
    const layout::Layout from = *gen::layout(shape);
    const layout::Layout to = *gen::layout(shape);
    const i64 node_size = *gen::between(1, 5);
    const Traffic got = measure(from, to, node_size);
    const Traffic want = by_definition(from, to, node_size);
    RC_ASSERT(got.total == want.total);
    RC_ASSERT(got.kept == want.kept);
    RC_ASSERT(got.moved == want.moved);
    RC_ASSERT(got.wanted_once == want.wanted_once);
    RC_ASSERT(got.gather_first == want.gather_first);
    RC_ASSERT(got.inter_node == want.inter_node);
    RC_ASSERT(got.total == got.kept + got.moved);             // T1
    RC_ASSERT(got.moved == got.lower_bound);                  // T2
    RC_ASSERT(got.moved == sum_of(got.transfers));            // T2
    RC_ASSERT(got.inter_node <= got.between_nodes);           // T3
    RC_ASSERT(got.between_nodes <= got.between_nodes_equal);  // T3
    RC_ASSERT(got.between_nodes_equal <= got.moved);          // T3
  }));
}

TEST_CASE("every device receives what it lacks, from devices that have some of it") {
  CHECK(rc::check("transfers", [] {
    const Shape shape = *gen::shape();
    const layout::Layout from = *gen::layout(shape);
    const layout::Layout to = *gen::layout(shape);
    Elements have = elements_of(from);
    Elements need = elements_of(to);
    std::map<i64, i64> received;
    for (const Transfer& transfer : measure(from, to).transfers) {
      RC_ASSERT(transfer.from != transfer.to);
      RC_ASSERT(transfer.bytes > 0);
      const auto useful = both(have[transfer.from], need[transfer.to]);
      RC_ASSERT(transfer.bytes <= static_cast<i64>(useful.size()) * kBytes);
      received[transfer.to] += transfer.bytes;
    }
    for (const auto& [rank, elements] : need) {
      const auto kept = both(elements, have[rank]).size();
      RC_ASSERT(received[rank] == static_cast<i64>(elements.size() - kept) * kBytes);
    }
  }));
}

TEST_CASE("a layout onto itself moves nothing") {
  CHECK(rc::check("plan(A, A)", [] {
    const layout::Layout layout = *gen::layout(*gen::shape());
    const Traffic same = measure(layout, layout);
    RC_ASSERT(same.moved == 0);
    RC_ASSERT(same.transfers.empty());
    RC_ASSERT(same.gather_first == 0);
    RC_ASSERT(same.inter_node == 0);
  }));
}

TEST_CASE("without replicas the way back is the way there, turned round") {
  CHECK(rc::check("plan(A, B) transposed = plan(B, A)", [] {
    const Shape shape = *gen::shape();
    const layout::Layout from = *gen::layout(shape);
    const layout::Layout to = *gen::layout(shape);
    const bool once = has_no_replicas(from) && has_no_replicas(to);
    RC_CLASSIFY(once, "no replicas");
    if (!once) return;
    std::vector<Transfer> back;
    for (const Transfer& t : measure(to, from).transfers) back.push_back({t.to, t.from, t.bytes});
    std::sort(back.begin(), back.end(), [](const Transfer& a, const Transfer& b) {
      return std::pair(a.from, a.to) < std::pair(b.from, b.to);
    });
    RC_ASSERT(measure(from, to).transfers == back);
  }));
}

TEST_CASE("replicas that hold the same send equal parts, to within an element") {
  CHECK(rc::check("sender balance", [] {
    const i64 holders = *gen::between(1, 5);
    const i64 receivers = *gen::between(1, 6);
    const i64 extent = *gen::between(1, 40);
    const Shape shape{extent};
    std::vector<i64> from_ranks;
    std::vector<i64> to_ranks;
    for (i64 h = 0; h < holders; ++h) from_ranks.push_back(h);
    for (i64 r = 0; r < receivers; ++r) to_ranks.push_back(holders + r);
    const auto region = index::whole_region(shape);
    const auto from = index::HolderSet::of(shape, std::vector(from_ranks.size(), region));
    const auto to = index::HolderSet::of(shape, std::vector(to_ranks.size(), region));
    std::map<i64, i64> sent;
    for (const Transfer& t : traffic({&from, from_ranks}, {&to, to_ranks}, kBits, 8).transfers)
      sent[t.from] += t.bytes;
    const i64 all = receivers * extent * kBytes;
    for (i64 h = 0; h < holders; ++h) {
      RC_ASSERT(sent[h] >= all / kBytes / holders * kBytes);
      RC_ASSERT(sent[h] <= ceil_div(all / kBytes, holders) * kBytes);
    }
  }));
}

TEST_CASE("two holders and three receivers of the same 12 bytes: 18 bytes each (D36)") {
  const Shape shape{6};
  const std::vector<i64> from_ranks{0, 1};
  const std::vector<i64> to_ranks{2, 3, 4};
  const auto region = index::whole_region(shape);
  const auto from = index::HolderSet::of(shape, std::vector(2, region));
  const auto to = index::HolderSet::of(shape, std::vector(3, region));
  const Traffic got = traffic({&from, from_ranks}, {&to, to_ranks}, kBits, 8);
  CHECK(got.transfers == std::vector<Transfer>{{0, 2, 12}, {0, 3, 6}, {1, 3, 6}, {1, 4, 12}});
}

TEST_CASE("one device to eight replicas: seven times the tensor, all from that device (D35)") {
  const Shape shape{4, 8};
  const Traffic got = measure(whole_on(shape, 1), whole_on(shape, 8));
  const i64 tensor = 4 * 8 * kBytes;
  CHECK(got.moved == 7 * tensor);
  REQUIRE(got.transfers.size() == 7);
  for (const Transfer& t : got.transfers) CHECK(t == Transfer{0, t.to, tensor});
}

TEST_CASE("rows over four devices to columns over four: three quarters move, 12 each (D34)") {
  const Shape shape{8, 8};
  const Traffic got = measure(cut(shape, 4, 0), cut(shape, 4, 1));
  CHECK(got.moved == 48 * kBytes);
  std::map<i64, i64> received;
  for (const Transfer& t : got.transfers) received[t.to] += t.bytes;
  for (const auto& [rank, bytes] : received) CHECK(bytes == 12 * kBytes);
}

TEST_CASE("m and n even parts of a line meet in m + n - gcd(m, n) pieces (D32)") {
  const std::pair<i64, i64> counts[] = {{2, 3}, {4, 6}, {4, 8}, {3, 5}, {8, 12}};
  for (const auto& [m, n] : counts) {
    const Shape shape{std::lcm(m, n)};
    CHECK(measure(cut(shape, m), cut(shape, n)).write_segments == m + n - std::gcd(m, n));
  }
}

TEST_CASE("ten rows over four devices: from balanced to ceil one row moves (D37)") {
  const Shape shape{10};
  const Traffic got = measure(cut(shape, 4), cut(shape, 4, 0, layout::kCeil));
  CHECK(got.moved == 1 * kBytes);
  CHECK(got.transfers == std::vector<Transfer>{{3, 2, kBytes}});
}

// contrib/nccl_m2n of NVIDIA/nccl, README of its tests: shapes, and axes that are replicated (r) or
// cut (s) over a mesh of 3:1 and of 1:3 devices; here between two disjoint sets of devices.
TEST_CASE("the shapes of NCCL's many-to-many tests arrive whole, with nothing sent twice (D42)") {
  const Shape shapes[] = {{200, 200}, {240, 240}, {64, 128, 128}, {8192}};
  for (const Shape& shape : shapes) {
    for (const auto& [m, n] : {std::pair<i64, i64>{3, 1}, {1, 3}, {6, 2}}) {
      const layout::Layout from = cut(shape, m);
      const layout::Layout to = whole_on(shape, n);
      std::vector<i64> elsewhere;
      for (i64 rank = 0; rank < n; ++rank) elsewhere.push_back(m + rank);
      const Traffic got = traffic(holders_of(from), {&to.holders(), elsewhere}, kBits, 8);
      const i64 tensor = element_count(shape).value() * kBytes;
      CHECK(got.moved == n * tensor);
      CHECK(got.lower_bound == n * tensor);
      CHECK(static_cast<i64>(got.transfers.size()) == m * n);
    }
  }
}

TEST_CASE("runs are counted where they are contiguous in each side's own array") {
  // 4 x 6, columns cut in two: a device's part is 4 runs of the whole, and one of its own.
  const Shape shape{4, 6};
  const auto file = index::HolderSet::whole(shape);
  const layout::Layout to = cut(shape, 2, 1);
  const Traffic got = traffic({&file, {}}, holders_of(to), kBits, 8);
  CHECK(got.reads.runs == 8);
  CHECK(got.write_segments == 2);
  CHECK(got.transfers == std::vector<Transfer>{{plan::kStorage, 0, 24}, {plan::kStorage, 1, 24}});
  CHECK(got.inter_node == 0);
}

TEST_CASE("bytes enter a node once, however many of its devices want them") {
  const Shape shape{16};
  const Traffic got = measure(whole_on(shape, 1), whole_on(shape, 8), 4);
  CHECK(got.moved == 7 * 32);
  CHECK(got.inter_node == 32);
}

TEST_CASE("what a device of the own node has is not fetched from another") {
  // Nodes 0-1, 2-3 and 4-5; devices 0 and 2 have 4 elements of 2 bytes, the other four want them:
  // 1 and 3 from their neighbours, 4 and 5 from both. Equal parts would cross for half of 1 and 3.
  const layout::Layout whole = whole_on({4}, 6);
  const std::vector<i64> having{0, 2};
  const layout::Layout two = whole_on({4}, 2);
  const Traffic got = traffic({&two.holders(), having}, holders_of(whole), kBits, 2);
  CHECK(got.moved == 4 * 8);
  CHECK(got.between_nodes == 2 * 8);
  CHECK(got.between_nodes_equal == 2 * 8 + 2 * 4);
  CHECK(got.inter_node == 8);
  CHECK(got.transfers == std::vector<Transfer>{{0, 1, 8}, {0, 4, 8}, {2, 3, 8}, {2, 5, 8}});
}

TEST_CASE("what nobody has cannot be sent") {
  const Shape shape{8};
  const std::vector<i64> ranks{0};
  const auto half = index::HolderSet::of(
      shape, std::vector<index::Region>(1, {index::AxisMap::slice(8, {0, 4})}));
  const layout::Layout to = whole_on(shape, 2);
  CHECK_ERROR(kCoverage, traffic({&half, ranks}, holders_of(to), kBits, 8));
}

TEST_CASE("overlaps of all pairs of devices are those of their elements") {
  CHECK(rc::check("add_overlaps", [] {
    const Shape shape = *gen::shape();
    const layout::Layout from = *gen::layout(shape);
    const layout::Layout to = *gen::layout(shape);
    const i64 devices = std::max(from.mesh().size(), to.mesh().size());
    std::vector<i64> overlap(static_cast<size_t>(to.mesh().size() * devices), 0);
    plan::add_overlaps(holders_of(from), holders_of(to), kBits, 3, devices, overlap);
    Elements have = elements_of(from);
    for (const auto& [rank, elements] : elements_of(to)) {
      for (i64 device = 0; device < devices; ++device) {
        RC_ASSERT(overlap[static_cast<size_t>(rank * devices + device)] ==
                  static_cast<i64>(both(elements, have[device]).size()) * kBytes * 3);
      }
    }
  }));
}

}  // namespace
