#include "lib/base/even_shares.h"

#include <algorithm>

namespace shardtool {

std::vector<int> even_shares(std::span<const i64> bytes, int shares) {
  double total = 0;
  for (const i64 one : bytes) total += static_cast<double>(one);
  std::vector<int> runs;
  double before = 0;
  for (const i64 one : bytes) {
    const auto size = static_cast<double>(one);
    const double middle = before + size / 2;
    const int run = total > 0 ? static_cast<int>(middle / total * shares) : 0;
    runs.push_back(std::min(run, shares - 1));
    before += size;
  }
  return runs;
}

}  // namespace shardtool
