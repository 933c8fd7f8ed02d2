#include "lib/api/transfer/shares.h"

#include <algorithm>

namespace shardtool::api {
namespace {

i64 bytes_of(const exec::TensorMove& move) {
  return byte_size(move.dtype, move.shape).value_or(0);
}

}  // namespace

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
  double total = 0;
  for (const size_t i : order) total += static_cast<double>(bytes_of(moves[i]));
  std::vector<int> owners(moves.size());
  double before = 0;
  for (const size_t i : order) {
    const auto bytes = static_cast<double>(bytes_of(moves[i]));
    const double middle = before + bytes / 2;
    const int owner = total > 0 ? static_cast<int>(middle / total * shares) : 0;
    owners[i] = std::min(owner, shares - 1);
    before += bytes;
  }
  return owners;
}

}  // namespace shardtool::api
