#include "lib/api/transfer/shares.h"

#include <algorithm>

#include "lib/base/even_shares.h"

namespace shardtool::api {
namespace {

i64 bytes_of(const exec::TensorMove& move) {
  return byte_size(move.dtype, move.shape).value_or(0);
}

}  // namespace

bool leads(const WriteOptions& options) {
  return !options.share || options.share->number == 0;
}

WorkShares summarize_shares(std::span<const exec::TensorMove> moves, std::span<const int> owners,
                            int shares) {
  std::vector<i64> bytes(static_cast<size_t>(shares));
  for (size_t i = 0; i < moves.size(); ++i) {
    bytes[static_cast<size_t>(owners[i])] += bytes_of(moves[i]);
  }
  const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
  return {shares, *least, *most};
}

std::vector<int> share_out(std::span<const exec::TensorMove> moves, std::span<const size_t> order,
                           int shares) {
  std::vector<i64> bytes;
  for (const size_t i : order) bytes.push_back(bytes_of(moves[i]));
  const std::vector<int> runs = even_shares(bytes, shares);
  std::vector<int> owners(moves.size());
  for (size_t i = 0; i < order.size(); ++i) owners[order[i]] = runs[i];
  return owners;
}

}  // namespace shardtool::api
