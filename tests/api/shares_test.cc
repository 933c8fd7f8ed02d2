#include "lib/api/transfer/shares.h"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/support/generators.h"

namespace shardtool::api {
namespace {

std::vector<exec::TensorMove> moves_of(const std::vector<i64>& bytes) {
  std::vector<exec::TensorMove> moves;
  for (const i64 size : bytes) {
    moves.emplace_back();
    moves.back().dtype = Dtype::kU8;
    moves.back().shape = {size};
  }
  return moves;
}

std::vector<size_t> in_order(size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

TEST_CASE("every tensor has one owner, and owners follow the order of the source") {
  rc::check("share_out", [] {
    const auto bytes = *rc::gen::container<std::vector<i64>>(gen::between(0, 1000));
    const auto n = static_cast<int>(*gen::between(1, 9));
    const auto moves = moves_of(bytes);
    const auto owners = share_out(moves, in_order(moves.size()), n);
    RC_ASSERT(owners.size() == moves.size());
    RC_ASSERT(std::is_sorted(owners.begin(), owners.end()));
    for (const int owner : owners) RC_ASSERT((owner >= 0 && owner < n));
    const WorkShares shares = summarize_shares(moves, owners, n);
    const i64 total = std::accumulate(bytes.begin(), bytes.end(), i64{0});
    const i64 largest = bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
    RC_ASSERT(shares.most <= total / n + largest + 1);
    RC_ASSERT(shares.least <= total / n);
  });
}

TEST_CASE("equal tensors are dealt out evenly") {
  const auto moves = moves_of(std::vector<i64>(12, 100));
  const auto owners = share_out(moves, in_order(12), 4);
  CHECK(owners == std::vector<int>{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3});
}

}  // namespace
}  // namespace shardtool::api
