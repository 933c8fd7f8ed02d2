#include "lib/api/transfer/sources/chunks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/exec/move.h"

namespace shardtool::api {
namespace {

using index::AxisMap;
using index::Interval;
using index::Region;

using Box = std::vector<Interval>;

/// Boxes of the elements that a region has: the product of its axes' pieces.
std::vector<Box> boxes_of(const Region& region) {
  std::vector<Box> boxes{{}};
  for (const AxisMap& axis : region) {
    std::vector<Box> longer;
    for (const Box& box : boxes) {
      for (const index::Piece& piece : axis.pieces()) {
        longer.push_back(box);
        longer.back().push_back({piece.global, piece.global_end()});
      }
    }
    boxes = std::move(longer);
  }
  return boxes;
}

bool overlap(const Box& a, const Box& b) {
  for (size_t axis = 0; axis < a.size(); ++axis) {
    if (a[axis].end <= b[axis].begin || b[axis].end <= a[axis].begin) return false;
  }
  return true;
}

/// Appends the boxes of `from` that are outside of `hole`: at most two per axis.
void append_outside(Box from, const Box& hole, std::vector<Box>& rest) {
  if (!overlap(from, hole)) return rest.push_back(std::move(from));
  for (size_t axis = 0; axis < from.size(); ++axis) {
    const Interval cut{std::max(from[axis].begin, hole[axis].begin),
                       std::min(from[axis].end, hole[axis].end)};
    for (const Interval side :
         {Interval{from[axis].begin, cut.begin}, Interval{cut.end, from[axis].end}}) {
      if (side.size() <= 0) continue;
      rest.push_back(from);
      rest.back()[axis] = side;
    }
    from[axis] = cut;
  }
}

/// The boxes of `boxes` without what `taken` has.
std::vector<Box> without(std::vector<Box> boxes, const std::vector<Box>& taken) {
  for (const Box& hole : taken) {
    std::vector<Box> rest;
    for (Box& box : boxes) append_outside(std::move(box), hole, rest);
    boxes = std::move(rest);
  }
  return boxes;
}

/// Holders of a tensor as boxes. The boxes of a group of replicas lie side by side.
struct Chunks {
  struct Group {
    std::vector<int> replicas;  ///< holders that have these boxes
    size_t boxes = 0;
    i64 elements = 0;
  };
  std::shared_ptr<const index::HolderSet> holders;
  std::vector<Group> groups;
};

Region region_of(const Box& box, const Shape& shape) {
  Region region;
  for (size_t axis = 0; axis < box.size(); ++axis) {
    region.push_back(AxisMap::slice(shape[axis], box[axis]));
  }
  return region;
}

Chunks chunks_of(const index::HolderSet& of) {
  const Shape& shape = of.shape();
  const i64 all = element_count(shape).value_or(0);
  std::vector<std::vector<Box>> boxes;
  Chunks chunks;
  i64 held = 0;
  for (const int h : of.firsts()) {
    const std::span<const int> replicas = of.replicas(h);
    chunks.groups.push_back({{replicas.begin(), replicas.end()}});
    boxes.push_back(boxes_of(of.region(h)));
    held += image_size(of.region(h));
  }
  auto holders = std::make_shared<index::HolderSet>(shape);
  std::vector<Box> taken;
  for (size_t g = 0; g < boxes.size(); ++g) {
    if (held > all) {  // devices share some of their elements
      boxes[g] = without(std::move(boxes[g]), taken);
      taken.insert(taken.end(), boxes[g].begin(), boxes[g].end());
    }
    if (all == 0 && g == 0) boxes[g] = {Box(shape.size())};
    chunks.groups[g].boxes = boxes[g].size();
    for (const Box& box : boxes[g]) {
      const Region region = all == 0 ? index::whole_region(shape) : region_of(box, shape);
      chunks.groups[g].elements += image_size(region);
      holders->add(region);
    }
  }
  chunks.holders = std::move(holders);
  return chunks;
}

Error unsupported(const TargetLayout& target, const std::string& tensor, const char* why) {
  return Error(ErrorCode::kUnsupported, "a tensor cannot be stored in chunks")
      .tensor(quote_for_message(tensor))
      .note("layout", target.layout)
      .note("why", why);
}

/// Gives each group of replicas to the rank with the fewest bytes so far.
class Dealer {
 public:
  explicit Dealer(const std::vector<i64>& ranks) {
    for (const i64 rank : ranks) bytes_[rank] = 0;
  }

  std::vector<i64> deal(const Chunks& chunks, const std::vector<i64>& rank_of_holder,
                        int bits_per_element) {
    std::vector<i64> ranks;
    for (const Chunks::Group& group : chunks.groups) {
      i64 least = -1;
      for (const int holder : group.replicas) {
        const i64 rank = rank_of_holder[static_cast<size_t>(holder)];
        if (least < 0 || bytes_[rank] < bytes_[least]) least = rank;
      }
      bytes_[least] += group.elements * bits_per_element / 8;
      ranks.insert(ranks.end(), group.boxes, least);
    }
    return ranks;
  }

 private:
  std::map<i64, i64> bytes_;
};

/// Numbers of the target's tensors in the order of their names, which is the same for every source
/// with these tensors.
std::vector<size_t> in_order_of_names(const LogicalCheckpoint& source, const TargetLayout& target) {
  std::vector<size_t> order(target.tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t t) -> std::string_view {
    return source.tensors[target.tensors[t].source].spec.name;
  });
  return order;
}

}  // namespace

void store_in_chunks(const LogicalCheckpoint& source, TargetLayout& target) {
  if (target.output) {
    throw unsupported(target, target.output->front().name,
                      "the mapping's \"store\" joins tensors, and chunks are of single ones")
        .help(
            "give a mapping without \"store\"; for reshard: --to FILE or --to-preset NAME, in "
            "place of the manifest's");
  }
  std::unordered_map<std::shared_ptr<const index::HolderSet>, Chunks> known;  // shared by tensors
  Dealer dealer(target.ranks);
  for (const size_t t : in_order_of_names(source, target)) {
    TargetTensor& tensor = target.tensors[t];
    const TensorSpec& spec = source.tensors[tensor.source].spec;
    if (!tensor.shifts.empty()) {
      throw unsupported(target, spec.name, "every device has values of its own")
          .help("write the plain layout");
    }
    if (tensor.ranks.empty()) continue;
    const auto [found, is_new] = known.try_emplace(tensor.holders);
    if (is_new) found->second = chunks_of(*tensor.holders);
    tensor.ranks = dealer.deal(found->second, tensor.ranks, bits(spec.dtype));
    tensor.holders = found->second.holders;
    tensor.fills = nullptr;
  }
}

}  // namespace shardtool::api
