#include "lib/engine/diagnosis/recorded_bytes.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/crc64/crc64.h"

namespace shardtool::engine {
namespace {

/// Byte offset in a part of row `begin` of a product's matrix.
i64 offset_of(const Side& side, const MatrixProduct& product, i64 begin) {
  i64 row = product.above + begin;
  if (product.outer >= 0) {
    row += product.outer * side.region(product.tensor, product.rank)[1].local_size();
  }
  return row * product.row_bytes();
}

}  // namespace

void RecordedByteCheck::add(bool of_shards, const MatrixProduct& product, i64 begin, i64 end,
                            std::span<const std::byte> bytes) {
  if (product.tensor >= recorded_.tensors || begin >= end) return;
  const Side& side = of_shards ? shards_ : whole_;
  add_at({of_shards, product.tensor, product.rank}, offset_of(side, product, begin), bytes);
}

void RecordedByteCheck::add_all(bool of_shards, size_t tensor, i64 rank,
                                std::span<const std::byte> bytes) {
  if (tensor < recorded_.tensors) add_at({of_shards, tensor, rank}, 0, bytes);
}

/// Ignores bytes that are read again after the whole part has been hashed.
void RecordedByteCheck::add_at(const Key& key, i64 offset, std::span<const std::byte> bytes) {
  const auto& [of_shards, tensor, rank] = key;
  const auto [entry, is_new] = streams_.try_emplace(key);
  Stream& stream = entry->second;
  if (is_new) {
    const Side& side = of_shards ? shards_ : whole_;
    const Shape shape = index::local_shape(side.region(tensor, rank));
    stream.bytes = byte_size(side.tensors[tensor].dtype, shape).value_or(0);
  } else if (stream.is_broken || stream.is_complete()) {
    return;
  }
  if (offset != stream.next) {
    stream.is_broken = true;
    stream.running.reset();
    return;
  }
  stream.next += std::ssize(bytes);
  if (!of_shards) {
    stream.crc64 = kernels::Crc64::extend(stream.crc64, bytes);
    return;
  }
  if (!stream.running) stream.running.emplace();
  stream.running->update(bytes);
  if (!stream.is_complete()) return;
  stream.xxh3 = stream.running->value();
  stream.running.reset();
}

const RecordedByteCheck::Stream* RecordedByteCheck::complete(const Key& key) const {
  const auto found = streams_.find(key);
  return found != streams_.end() && found->second.is_complete() ? &found->second : nullptr;
}

void RecordedByteCheck::hold_part(size_t tensor, i64 rank, RecordedBytes& result) const {
  const index::Region region = shards_.region(tensor, rank);
  if (element_count(index::local_shape(region)) == 0) return;
  const auto expected = recorded_.of_part(tensor, rank);
  const Stream* const stream = complete({true, tensor, rank});
  if (!expected || stream == nullptr) {
    result.unread.insert(tensor);
    return;
  }
  if (stream->xxh3 == *expected) return;
  result.different.push_back({shards_.tensors[tensor].name, rank, "XXH3-128 " + stream->xxh3.hex(),
                              "XXH3-128 " + expected->hex()});
}

void RecordedByteCheck::hold_whole(size_t tensor, RecordedBytes& result) const {
  const auto expected = recorded_.of_whole(tensor);
  if (!expected) return;
  const Stream* const stream = complete({false, tensor, 0});
  if (stream == nullptr) {
    result.unread.insert(tensor);
  } else if (stream->crc64 != *expected) {
    result.different.push_back({shards_.tensors[tensor].name, RecordedBytes::kWhole,
                                fmt::format("CRC-64 {:016x}", stream->crc64),
                                fmt::format("CRC-64 {:016x}", *expected)});
  }
}

RecordedBytes RecordedByteCheck::result(std::span<const i64> ranks, bool reads_whole,
                                        const std::set<size_t>& judged) const {
  RecordedBytes result;
  for (const size_t tensor : judged) {
    if (tensor >= recorded_.tensors) continue;
    for (const i64 rank : ranks) {
      if (shards_.layouts(tensor).region(rank)) hold_part(tensor, rank, result);
    }
    if (reads_whole) hold_whole(tensor, result);
  }
  return result;
}

}  // namespace shardtool::engine
