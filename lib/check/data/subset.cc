#include "lib/check/data/subset.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

#include "kernels/xxh3/xxh3.h"

namespace shardtool::check {
namespace {

/// Hash that spreads names evenly, the same on every machine.
std::uint64_t hash_of(const std::string& name) {
  constexpr size_t kDigits = 16;
  constexpr int kHex = 16;
  return std::stoull(kernels::xxh3_hex(std::as_bytes(std::span(name))).substr(0, kDigits), nullptr,
                     kHex);
}

std::vector<bool> choose_bytes(i64 budget, std::span<const DataTensor> tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(hash_of(tensors[a].spec.name), a) <
           std::pair(hash_of(tensors[b].spec.name), b);
  });
  std::vector<bool> chosen(tensors.size());
  i64 used = 0;
  for (const size_t t : order) {
    const i64 bytes = stored_bytes(tensors[t]);
    if (used > 0 && bytes > budget - used) continue;
    chosen[t] = true;
    used += bytes;
  }
  return chosen;
}

}  // namespace

std::vector<bool> choose(const DataSubset& subset, std::span<const DataTensor> tensors) {
  if (subset.bytes) return choose_bytes(*subset.bytes, tensors);
  constexpr std::uint64_t kSteps = 1'000'000;
  std::vector<bool> chosen;
  std::optional<std::pair<std::uint64_t, size_t>> first;  // of those in the part, by hash
  for (const DataTensor& tensor : tensors) {
    const std::uint64_t hash = hash_of(tensor.spec.name);
    const bool in_part =
        static_cast<i64>(hash % static_cast<std::uint64_t>(subset.parts)) == subset.part - 1;
    const bool in_fraction =
        static_cast<double>(hash % kSteps) < subset.fraction * static_cast<double>(kSteps);
    const std::pair place(hash % kSteps, chosen.size());
    if (in_part && (!first || place < *first)) first = place;
    chosen.push_back(in_part && in_fraction);
  }
  // A fraction of a few tensors is one of them.
  const bool is_fraction = subset.fraction > 0 && subset.fraction < 1;
  if (is_fraction && first && std::ranges::find(chosen, true) == chosen.end())
    chosen[first->second] = true;
  return chosen;
}

}  // namespace shardtool::check
