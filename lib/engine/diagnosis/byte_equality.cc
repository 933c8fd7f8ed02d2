#include "lib/engine/diagnosis/byte_equality.h"

#include <algorithm>
#include <array>
#include <optional>

#include "kernels/digest/placed_crc64.h"
#include "lib/engine/diagnosis/peer_text.h"
#include "lib/index/holder_set.h"

namespace shardtool::engine {
namespace {

/// Digest of rows [begin, end) of a part's matrix, each byte at its place in the whole tensor. The
/// rows are the part's own if `is_own`, else the whole model's.
std::uint64_t placed_digest(const StoredPart& part, i64 outer, bool is_own, i64 begin, i64 end,
                            std::span<const std::byte> bytes) {
  const i64 rows = part.rows.global_size();
  const i64 columns = part.columns.global_size();
  const i64 all_rows = part.outer.global_size() * rows;
  const std::array source_extents{end - begin, is_own ? part.columns.local_size() : columns};
  const std::array extents{all_rows, columns};
  std::uint64_t digest = 0;
  for (const index::Piece& r : part.rows.pieces()) {
    const i64 first = is_own ? r.local : r.global;
    const i64 from = std::max(begin, first);
    const i64 to = std::min(end, first + r.size);
    if (from >= to) continue;
    for (const index::Piece& c : part.columns.pieces()) {
      const std::array sizes{to - from, c.size};
      const std::array source{from - begin, is_own ? c.local : c.global};
      const std::array place{outer * rows + r.global + from - first, c.global};
      const auto copy =
          index::lower(sizes, {source, source_extents}, {place, extents}, bits(part.dtype));
      digest ^=
          kernels::placed_crc64(*copy, bytes.data(), all_rows * columns * part.element_bytes());
    }
  }
  return digest;
}

}  // namespace

ByteEquality::Places& ByteEquality::places_of(size_t tensor) {
  const auto [entry, is_new] = places_.try_emplace(tensor);
  Places& places = entry->second;
  if (!is_new) return places;
  std::optional<index::HolderSet> known;  // finds equal parts by hash: there may be many ranks
  for (const i64 rank : shards_.layouts(tensor).ranks()) {
    auto part = own_part(whole_, shards_, tensor, rank);
    if (!part) continue;
    const index::Region place{part->outer, part->rows, part->columns};
    if (!known) known.emplace(index::global_shape(place));
    const int first = known->replicas(known->add(place)).front();
    const auto firsts = known->firsts();
    const auto number = std::ranges::lower_bound(firsts, first) - firsts.begin();
    places.of_rank[rank] = static_cast<size_t>(number);
    if (firsts.size() > places.parts.size()) places.parts.push_back(*std::move(part));
  }
  places.whole_digests.resize(places.parts.size());
  return places;
}

/// `outer` is a local index of the side.
void ByteEquality::add_rows(bool of_shards, size_t tensor, i64 rank, i64 outer, i64 begin, i64 end,
                            std::span<const std::byte> bytes) {
  if (of_shards) {
    const Places& places = places_of(tensor);
    const auto found = places.of_rank.find(rank);
    if (found == places.of_rank.end()) return;
    const StoredPart& part = places.parts[found->second];
    const auto global = part.outer(outer);
    if (!global) return;  // padding
    digests_[{tensor, rank}] ^= placed_digest(part, *global, true, begin, end, bytes);
    return;
  }
  const auto same = shards_.by_name.find(whole_.tensors[tensor].name);
  if (same == shards_.by_name.end()) return;
  Places& places = places_of(same->second);
  for (size_t i = 0; i < places.parts.size(); ++i) {
    const StoredPart& part = places.parts[i];
    if (!index::inverse(part.outer)(outer)) continue;
    places.whole_digests[i] ^= placed_digest(part, outer, false, begin, end, bytes);
  }
}

void ByteEquality::add(bool of_shards, const MatrixProduct& product, i64 begin, i64 end,
                       std::span<const std::byte> bytes) {
  begin += product.above;
  end += product.above;
  if (product.outer >= 0) {
    add_rows(of_shards, product.tensor, product.rank, product.outer, begin, end, bytes);
  } else {
    add_lines(of_shards, product.tensor, product.rank, begin, end, bytes);
  }
}

/// Adds lines of the tensor's first axis, each with all inner axes.
void ByteEquality::add_lines(bool of_shards, size_t tensor, i64 rank, i64 begin, i64 end,
                             std::span<const std::byte> bytes) {
  const index::Region region = (of_shards ? shards_ : whole_).region(tensor, rank);
  constexpr size_t kStack = 3;
  if (region.size() < kStack) {
    return add_rows(of_shards, tensor, rank, 0, begin, end, bytes);
  }
  const size_t size = bytes.size() / static_cast<size_t>(std::max<i64>(1, end - begin));
  for (i64 line = begin; line < end; ++line) {
    add_rows(of_shards, tensor, rank, line, 0, region[1].local_size(),
             bytes.subspan(static_cast<size_t>(line - begin) * size, size));
  }
}

void ByteEquality::add_all(bool of_shards, size_t tensor, i64 rank,
                           std::span<const std::byte> bytes) {
  if (!added_.insert({of_shards, tensor, rank}).second) return;
  const index::Region region = (of_shards ? shards_ : whole_).region(tensor, rank);
  const i64 lines = region.empty() ? 1 : region.front().local_size();
  add_lines(of_shards, tensor, rank, 0, lines, bytes);
}

/// Broadcasts from the first process, the only one that has read the whole model.
void ByteEquality::share_whole_digests(Fabric& fabric) {
  std::map<size_t, std::vector<std::uint64_t>> digests;
  for (const auto& [tensor, places] : places_) digests[tensor] = places.whole_digests;
  take_from_peer(fabric.broadcast(to_peer(digests)), "digest",
                 [&](const nlohmann::json& text) { text.get_to(digests); });
  for (auto& [tensor, shared] : digests) {
    Places& places = places_of(tensor);
    shared.resize(places.parts.size());
    places.whole_digests = std::move(shared);
  }
}

ComparedBytes ByteEquality::result(Fabric& fabric, const std::set<size_t>& judged) {
  share_whole_digests(fabric);
  ComparedBytes compared;
  for (const auto& [key, digest] : digests_) {
    const auto& [tensor, rank] = key;
    if (!judged.contains(tensor)) continue;
    const Places& places = places_of(tensor);
    ++compared.parts;
    compared.tensors.insert(tensor);
    if (places.whole_digests[places.of_rank.at(rank)] == digest) continue;
    ++compared.differing;
    compared.different.push_back({shards_.tensors[tensor].name, rank});
  }
  return compared;
}

}  // namespace shardtool::engine
