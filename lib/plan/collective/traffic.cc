#include "lib/plan/collective/traffic.h"

#include <algorithm>
#include <functional>
#include <map>

#include "lib/base/error.h"
#include "lib/index/join.h"
#include "lib/index/row_major_range.h"
#include "lib/plan/byte_count.h"

namespace shardtool::plan {
namespace {

using index::AxisMap;
using index::HolderJoin;

constexpr int kBitsPerByte = 8;

/// Holders of boxes on one side.
class BoxHolders {
 public:
  explicit BoxHolders(const Holders& side) : side_(&side) {}

  /// Holder numbers of groups of replicas, ascending; may be empty.
  const std::vector<int>& of(std::span<const int> firsts) {
    holders_.clear();
    for (const int first : firsts) {
      const auto replicas = side_->set->replicas(first);
      holders_.insert(holders_.end(), replicas.begin(), replicas.end());
    }
    std::sort(holders_.begin(), holders_.end());
    return holders_;
  }
  /// Device of a holder.
  i64 rank(int holder) const {
    return side_->in_storage() ? kStorage : side_->ranks[static_cast<size_t>(holder)];
  }
  /// Reads of the box in the holder's row-major array.
  Reads reads(HolderJoin::Box box, int holder, int bits, i64 most_gap) {
    sizes_.clear();
    extents_.clear();
    for (size_t axis = 0; axis < box.size(); ++axis) {
      sizes_.push_back(box[axis]->size);
      extents_.push_back(map(holder, axis).local_size());
    }
    return reads_of(sizes_, extents_, bits, most_gap);
  }
  /// Extents of the holder's array.
  Shape extents(int holder) const { return side_->set->local_shape(holder); }

 private:
  const AxisMap& map(int holder, size_t axis) const {
    const auto number = static_cast<size_t>(side_->set->pick(holder)[axis]);
    return side_->set->maps(static_cast<int>(axis))[number];
  }

  const Holders* side_;
  std::vector<int> holders_;
  std::vector<i64> sizes_;
  std::vector<i64> extents_;
};

i64 box_bytes(HolderJoin::Box box, int bits) {
  return bytes_of(index::elements(box), bits);
}

/// Box that a device lacks.
struct LackedBox {
  std::vector<const HolderJoin::Cell*> cells;
  int holder = 0;  ///< of the device
  i64 bytes = 0;
};

/// Bytes that a device lacks and a group of equal senders has.
struct Lacked {
  i64 bytes = 0;
  std::vector<LackedBox> boxes;  ///< if they are listed: the bytes, in this order
};

/// Bytes that a group of equal senders has to send, by destination.
using Demand = std::map<i64, Lacked>;

/// Range of the bytes that a device lacks, and its sender.
struct DealtRange {
  i64 sender = 0;
  i64 begin = 0;
  i64 end = 0;
};

/// Splits a group's demands, as one stream, into equal parts, one per sender. Calls
/// deal(to, lacked, range) for every range of a destination's bytes that has one sender.
template <class Deal>
void deal_out(const std::vector<i64>& senders, const Demand& demand, i64 unit, const Deal& deal) {
  i64 all = 0;
  for (const auto& [to, lacked] : demand) add_bytes(all, lacked.bytes);
  const i64 units = all / unit;
  const auto n = static_cast<i64>(senders.size());
  const auto end_of = [&](i64 sender) {
    return (units / n * (sender + 1) + std::min(sender + 1, units % n)) * unit;
  };
  i64 at = 0;
  i64 sender = 0;
  for (const auto& [to, lacked] : demand) {
    for (i64 done = 0; done < lacked.bytes;) {
      while (sender + 1 < n && end_of(sender) <= at) ++sender;
      const i64 left = lacked.bytes - done;
      const i64 part = sender + 1 < n ? std::min(left, end_of(sender) - at) : left;
      deal(to, lacked, DealtRange{senders[static_cast<size_t>(sender)], done, done + part});
      at += part;
      done += part;
    }
  }
}

/// Bytes of a transfer, and its boxes if they are listed.
struct Sent {
  i64 bytes = 0;
  std::vector<TransferBox> boxes;
};

i64 row_major(const Shape& index, const Shape& extents) {
  i64 at = 0;
  for (size_t axis = 0; axis < extents.size(); ++axis) at = at * extents[axis] + index[axis];
  return at;
}

Shape plus(Shape index, const Shape& by) {
  for (size_t axis = 0; axis < index.size(); ++axis) index[axis] += by[axis];
  return index;
}

/// Holder of each rank.
std::map<i64, int> holder_of_rank(const Holders& side) {
  std::map<i64, int> holders;
  for (size_t h = 0; h < side.ranks.size(); ++h) holders[side.ranks[h]] = static_cast<int>(h);
  return holders;
}

/// Measures the boxes of one move, one after the other.
class Measure {
 public:
  Measure(const HolderJoin& join, const Holders& from, const Holders& to, int bits, i64 node_size,
          i64 most_gap, Boxes boxes)
      : join_(join),
        sources_(from),
        destinations_(to),
        bits_(bits),
        node_size_(node_size),
        most_gap_(most_gap),
        in_storage_(from.in_storage()),
        lists_boxes_(boxes == Boxes::kListed) {
    if (lists_boxes_) sender_holders_ = holder_of_rank(from);
  }

  void add(HolderJoin::Box box, Traffic& traffic) {
    const std::vector<int>& wanting = destinations_.of(join_.destinations(box));
    const std::vector<int>& having = sources_.of(join_.sources(box));
    if (having.empty()) throw Error(ErrorCode::kCoverage, "no source has all that is wanted");
    const i64 bytes = box_bytes(box, bits_);
    if (bytes == 0) return;
    add_bytes(traffic.wanted_once, bytes);
    senders_.clear();
    for (const int holder : having) senders_.push_back(sources_.rank(holder));
    std::sort(senders_.begin(), senders_.end());
    const Reads reads = sources_.reads(box, having.front(), bits_, most_gap_);
    traffic.reads += reads;
    for (const int holder : wanting) {
      add_bytes(traffic.total, bytes);
      traffic.write_segments += destinations_.reads(box, holder, bits_, 0).runs;
      if (in_storage_) loads_[destinations_.rank(holder)] += reads;
      deliver(box, holder, bytes, traffic);
    }
    if (!in_storage_) add_bytes(traffic.inter_node, times(bytes, nodes_without(wanting)));
  }

  void finish(Traffic& traffic) const {
    std::map<std::pair<i64, i64>, Sent> all;
    const i64 unit = std::max(1, bits_ / kBitsPerByte);
    for (const auto& [senders, demand] : demands_) {
      deal_out(senders, demand, unit, [&](i64 to, const Lacked& lacked, const DealtRange& range) {
        Sent& sent = all[{range.sender, to}];
        sent.bytes += range.end - range.begin;
        add_boxes(lacked, range, sent.boxes);
      });
    }
    for (auto& [ends, sent] : all) {
      if (sent.bytes == 0) continue;
      const auto& [sender, receiver] = ends;
      for (TransferBox& box : sent.boxes) {
        box.transfer = traffic.transfers.size();
        traffic.boxes.push_back(std::move(box));
      }
      traffic.transfers.push_back({sender, receiver, sent.bytes});
      if (!in_storage_ && sender / node_size_ != receiver / node_size_)
        add_bytes(traffic.between_nodes, sent.bytes);
    }
    for (const auto& [rank, reads] : loads_) traffic.loads.push_back({rank, reads});
  }

 private:
  void deliver(HolderJoin::Box box, int holder, i64 bytes, Traffic& traffic) {
    const i64 rank = destinations_.rank(holder);
    if (std::binary_search(senders_.begin(), senders_.end(), rank)) {
      add_bytes(traffic.kept, bytes);
      return;
    }
    add_bytes(traffic.moved, bytes);
    find_near(rank);
    const auto n = std::ssize(senders_);
    if (!in_storage_) {
      const i64 far_share = times(bytes, n - std::ssize(near_));
      add_bytes(traffic.between_nodes_equal, ceil_div(far_share, n));
    }
    Lacked& lacked = demands_[near_.empty() ? senders_ : near_][rank];
    lacked.bytes += bytes;
    if (lists_boxes_) lacked.boxes.push_back({{box.begin(), box.end()}, holder, bytes});
  }

  /// Adds the boxes of a range of the bytes that a device lacks.
  void add_boxes(const Lacked& lacked, const DealtRange& range,
                 std::vector<TransferBox>& boxes) const {
    const int sender = in_storage_ || !lists_boxes_ ? 0 : sender_holders_.at(range.sender);
    i64 at = 0;
    for (const LackedBox& box : lacked.boxes) {
      const i64 begin = std::max(range.begin, at) - at;
      const i64 end = std::min(range.end, at + box.bytes) - at;
      if (begin < end) add_boxes(box, sender, begin, end, boxes);
      at += box.bytes;
    }
  }

  /// Adds the bytes [begin, end) of a box that a device lacks.
  void add_boxes(const LackedBox& lacked, int sender, i64 begin, i64 end,
                 std::vector<TransferBox>& boxes) const {
    const Shape from = join_.local_in_source(lacked.cells, sender);
    const Shape to = join_.local_in_destination(lacked.cells, lacked.holder);
    const Shape from_extents = sources_.extents(sender);
    const Shape to_extents = destinations_.extents(lacked.holder);
    const Shape sizes = index::sizes(lacked.cells);
    const auto elements = [&](i64 bytes) { return bytes * kBitsPerByte / bits_; };
    const auto offset = [&](const Shape& index, const Shape& extents) {
      return row_major(index, extents) * bits_ / kBitsPerByte;
    };
    index::for_each_box_of_range(
        sizes, elements(begin), elements(end), [&](const Shape& first, const Shape& part) {
          TransferBox box{0, plus(from, first), plus(to, first), part, 0, 0};
          box.from_offset = offset(box.from, from_extents);
          box.to_offset = offset(box.to, to_extents);
          boxes.push_back(std::move(box));
        });
  }

  /// Finds the senders in the rank's own node.
  void find_near(i64 rank) {
    const i64 begin = rank / node_size_ * node_size_;
    const auto first = std::lower_bound(senders_.begin(), senders_.end(), begin);
    const auto last = std::lower_bound(first, senders_.end(), begin + node_size_);
    near_.assign(first, last);
    if (in_storage_) near_.clear();
  }

  /// Number of nodes that need the box without a holder of it.
  i64 nodes_without(const std::vector<int>& wanting) {
    nodes_.clear();
    for (const int holder : wanting) nodes_.push_back(destinations_.rank(holder) / node_size_);
    std::sort(nodes_.begin(), nodes_.end());
    nodes_.erase(std::unique(nodes_.begin(), nodes_.end()), nodes_.end());
    return std::count_if(nodes_.begin(), nodes_.end(), [&](i64 node) {
      const auto first = std::lower_bound(senders_.begin(), senders_.end(), node * node_size_);
      return first == senders_.end() || *first / node_size_ != node;
    });
  }

  const HolderJoin& join_;
  BoxHolders sources_;
  BoxHolders destinations_;
  int bits_;
  i64 node_size_;
  i64 most_gap_;
  bool in_storage_;
  bool lists_boxes_;
  std::map<i64, int> sender_holders_;  ///< by rank, if boxes are listed
  std::vector<i64> senders_;
  std::vector<i64> near_;
  std::vector<i64> nodes_;
  std::map<std::vector<i64>, Demand> demands_;
  std::map<i64, Reads> loads_;
};

const AxisMap& axis_map(const Holders& side, int holder, int axis) {
  return side.set->maps(axis)[static_cast<size_t>(side.set->pick(holder)[axis])];
}

i64 overlap(const AxisMap& a, const AxisMap& b) {
  if (a.is_identity()) return b.image_size();
  if (b.is_identity()) return a.image_size();
  return compose(inverse(b), a).image_size();
}

/// Computes the bounds from products over the axes alone: a second derivation, independent of
/// boxes.
void add_bounds(const Holders& from, const Holders& to, int bits, Traffic& traffic) {
  i64 whole = 1;
  for (const i64 extent : from.set->shape()) whole *= extent;
  const auto having = holder_of_rank(from);
  for (int wanting = 0; wanting < to.set->size(); ++wanting) {
    const auto device =
        to.in_storage() ? having.end() : having.find(to.ranks[static_cast<size_t>(wanting)]);
    i64 wanted = 1;
    i64 had = device == having.end() ? 0 : 1;
    i64 both = had;
    for (int axis = 0; axis < to.set->rank(); ++axis) {
      const AxisMap& map = axis_map(to, wanting, axis);
      wanted *= map.image_size();
      if (device == having.end()) continue;
      had *= axis_map(from, device->second, axis).image_size();
      both *= overlap(map, axis_map(from, device->second, axis));
    }
    add_bytes(traffic.lower_bound, bytes_of(wanted - both, bits));
    if (wanted > both) add_bytes(traffic.gather_first, bytes_of(whole - had, bits));
  }
}

}  // namespace

Traffic traffic(const Holders& from, const Holders& to, int bits, i64 node_size, i64 most_gap,
                Boxes boxes) {
  Traffic traffic;
  const HolderJoin join(*from.set, *to.set);
  Measure measure(join, from, to, bits, node_size, most_gap, boxes);
  join.for_each_box([&](HolderJoin::Box box) { measure.add(box, traffic); });
  measure.finish(traffic);
  add_bounds(from, to, bits, traffic);
  return traffic;
}

void add_overlaps(const Holders& from, const Holders& to, int bits, i64 count, i64 n_devices,
                  std::vector<i64>& overlap) {
  const HolderJoin join(*from.set, *to.set);
  BoxHolders sources(from);
  BoxHolders destinations(to);
  join.for_each_box([&](HolderJoin::Box box) {
    const i64 bytes = times(box_bytes(box, bits), count);
    if (bytes == 0) return;
    const auto& wanting = destinations.of(join.destinations(box));
    const auto& having = sources.of(join.sources(box));
    for (const int w : wanting) {
      i64* row = overlap.data() + destinations.rank(w) * n_devices;
      for (const int h : having) row[sources.rank(h)] += bytes;
    }
  });
}

}  // namespace shardtool::plan
