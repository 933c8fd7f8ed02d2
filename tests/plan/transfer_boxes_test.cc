// The boxes of transfers, against the elements of every rank.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "lib/plan/collective/traffic.h"
#include "tests/plan/one_axis.h"
#include "tests/support/generators.h"

using namespace shardtool;
using plan::Boxes;
using plan::Holders;
using plan::holders_of;
using plan::Traffic;
using plan::TransferBox;

namespace {

constexpr i64 kNode = 3;
constexpr i64 kNobody = -2;  ///< an element that is not there yet

/// Global numbers of the elements of a holder's array, row-major; padding is reference::kPadding.
std::vector<i64> array_elements(const index::Region& region) {
  std::vector<i64> elements{0};
  for (const index::AxisMap& map : region) {
    const reference::Indices indices = reference::indices(map);
    std::vector<i64> longer;
    for (const i64 outer : elements) {
      for (const i64 inner : indices) {
        const bool is_padding = outer == reference::kPadding || inner == reference::kPadding;
        longer.push_back(is_padding ? reference::kPadding : outer * map.global_size() + inner);
      }
    }
    elements = std::move(longer);
  }
  return elements;
}

/// A rank's array of elements, and its extents.
struct Array {
  Shape extents;
  std::vector<i64> elements;
};

std::map<i64, Array> arrays_of(const Holders& side) {
  std::map<i64, Array> arrays;
  for (int h = 0; h < side.set->size(); ++h) {
    const i64 rank = side.in_storage() ? plan::kStorage : side.ranks[static_cast<size_t>(h)];
    arrays[rank] = {side.set->local_shape(h), array_elements(side.set->region(h))};
  }
  return arrays;
}

/// Arrays of the destinations that have only what the ranks keep of their own.
std::map<i64, Array> kept_of(const std::map<i64, Array>& from, std::map<i64, Array> to) {
  for (auto& [rank, array] : to) {
    const auto own = from.find(rank);
    for (i64& element : array.elements) {
      const bool is_kept = own != from.end() && std::ranges::find(own->second.elements, element) !=
                                                    own->second.elements.end();
      if (element != reference::kPadding && !is_kept) element = kNobody;
    }
  }
  return to;
}

/// Copies the box's elements, each of which must be missing.
void apply(const TransferBox& box, const Array& sender, Array& receiver) {
  for (const std::vector<i64>& at : reference::tuples(box.sizes)) {
    std::vector<i64> from = at;
    std::vector<i64> to = at;
    for (size_t a = 0; a < at.size(); ++a) {
      from[a] += box.from[a];
      to[a] += box.to[a];
    }
    i64& target =
        receiver.elements.at(static_cast<size_t>(reference::row_major(to, receiver.extents)));
    RC_ASSERT(target == kNobody);
    target = sender.elements.at(static_cast<size_t>(reference::row_major(from, sender.extents)));
  }
}

void check_boxes(const Holders& from, const Holders& to, int bits) {
  const Traffic got = plan::traffic(from, to, bits, kNode, plan::kReadThrough, Boxes::kListed);
  const std::map<i64, Array> senders = arrays_of(from);
  const std::map<i64, Array> wanted = arrays_of(to);
  std::map<i64, Array> arrays = kept_of(senders, wanted);
  std::vector<i64> bytes(got.transfers.size(), 0);
  for (size_t b = 0; b < got.boxes.size(); ++b) {
    const TransferBox& box = got.boxes[b];
    RC_ASSERT((b == 0 || got.boxes[b - 1].transfer <= box.transfer));
    const plan::Transfer& transfer = got.transfers.at(box.transfer);
    const Array& sender = senders.at(transfer.from);
    Array& receiver = arrays.at(transfer.to);
    apply(box, sender, receiver);
    RC_ASSERT(box.from_offset == reference::row_major(box.from, sender.extents) * bits / 8);
    RC_ASSERT(box.to_offset == reference::row_major(box.to, receiver.extents) * bits / 8);
    bytes[box.transfer] += element_count(box.sizes).value() * bits / 8;
  }
  for (const auto& [rank, array] : wanted) RC_ASSERT(arrays.at(rank).elements == array.elements);
  for (size_t t = 0; t < bytes.size(); ++t) RC_ASSERT(bytes[t] == got.transfers[t].bytes);
}

TEST_CASE("the boxes of all transfers fill what every device lacks, each element once (T4)") {
  CHECK(rc::check("boxes between two layouts", [] {
    const Shape shape = *gen::shape();
    const layout::Layout from = *gen::layout(shape);
    const layout::Layout to = *gen::layout(shape);
    check_boxes(holders_of(from), holders_of(to), *rc::gen::element(8, 16, 32));
  }));
  CHECK(rc::check("boxes out of files", [] {
    const Shape shape = *gen::shape();
    const auto file = index::HolderSet::whole(shape);
    const layout::Layout to = *gen::layout(shape);
    check_boxes({&file, {}}, holders_of(to), 16);
  }));
}

TEST_CASE("a plan without boxes has the same transfers") {
  CHECK(rc::check("traffic with and without boxes", [] {
    const Shape shape = *gen::shape();
    const layout::Layout from = *gen::layout(shape);
    const layout::Layout to = *gen::layout(shape);
    const Holders a = holders_of(from);
    const Holders b = holders_of(to);
    const Traffic without = plan::traffic(a, b, 16, kNode);
    RC_ASSERT(without.boxes.empty());
    RC_ASSERT(plan::traffic(a, b, 16, kNode, plan::kReadThrough, Boxes::kListed).transfers ==
              without.transfers);
  }));
}

TEST_CASE("replicas that share a send cut it where their equal parts end") {
  const Shape shape{3, 2};
  const std::vector<i64> having{0, 1};
  const std::vector<i64> wanting{2};
  const layout::Layout two = plan::whole_on(shape, 2);
  const layout::Layout one = plan::whole_on(shape, 1);
  const Traffic got = plan::traffic({&two.holders(), having}, {&one.holders(), wanting}, 16, 8,
                                    plan::kReadThrough, Boxes::kListed);
  REQUIRE(got.boxes.size() == 4);  // three elements each: a row and a half
  CHECK(got.boxes[0].sizes == Shape{1, 2});
  CHECK(got.boxes[1].to == Shape{1, 0});
  CHECK(got.boxes[1].sizes == Shape{1, 1});
  CHECK(got.boxes[2].transfer == 1);
  CHECK(got.boxes[2].to == Shape{1, 1});
  CHECK(got.boxes[2].to_offset == 6);
}

}  // namespace
