#include "lib/engine/run/native_exchange.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "kernels/decode/decode.h"
#include "kernels/encode/encode.h"
#include "lib/base/error.h"

namespace shardtool::engine {
namespace {

std::string encoded(Dtype type, const std::vector<float>& numbers) {
  std::string bytes(numbers.size() * static_cast<size_t>(bits(type) / 8), '\0');
  kernels::from_floats(type, numbers.data(), std::ssize(numbers),
                       reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

std::vector<float> decoded(Dtype type, const std::string& bytes) {
  std::vector<float> numbers(bytes.size() / static_cast<size_t>(bits(type) / 8));
  kernels::to_floats(type, reinterpret_cast<const std::byte*>(bytes.data()), std::ssize(numbers),
                     numbers.data());
  return numbers;
}

}  // namespace

comm::Communicator* NativeExchange::among(const std::vector<int>& processes) {
  if (processes.size() == 1) return nullptr;
  if (std::ssize(processes) == comm_.size()) return &comm_;
  const bool takes_part = std::ranges::binary_search(processes, comm_.rank());
  const auto [found, is_new] = among_.try_emplace(processes);
  if (is_new) found->second = comm_.split(takes_part ? 0 : -1, 0);
  return found->second.get();
}

void NativeExchange::sum(const ExchangeGroup& group, Placed<float>& value) {
  comm::Communicator* const comm = among(group.processes);
  std::vector<float> sum;
  for (const i64 rank : group.ranks) {
    const auto own = value.find(rank);
    if (own == value.end()) continue;
    const std::vector<float>& summand = own->second.data.values();
    if (sum.empty()) sum.resize(summand.size());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += summand[i];
  }
  std::string bytes = encoded(type_, sum);
  if (comm != nullptr) comm->native_all_reduce(type_, std::as_writable_bytes(std::span(bytes)));
  sum = decoded(type_, bytes);
  for (const i64 rank : group.ranks) {
    if (const auto own = value.find(rank); own != value.end()) own->second.data = sum;
  }
}

Placed<float> NativeExchange::gathered(const ExchangeGroup& group, const Placed<float>& headers,
                                       i64 tokens, const Placed<float>& value) {
  comm::Communicator* const comm = among(group.processes);
  std::vector<float> mine;
  for (const i64 rank : group.ranks) {
    const auto own = value.find(rank);
    if (own == value.end()) continue;
    const std::vector<float>& numbers = own->second.data.values();
    mine.insert(mine.end(), numbers.begin(), numbers.end());
  }
  if (mine.empty() && comm == nullptr) return {};
  // The processes' ranks ascend as the processes do.
  std::string all = encoded(type_, mine);
  if (comm != nullptr) {
    const std::vector<std::string> of_processes = comm->all_gather(all);
    all = std::accumulate(of_processes.begin(), of_processes.end(), std::string());
  }
  const std::vector<float> gathered = decoded(type_, all);
  Placed<float> parts;
  auto next = gathered.begin();
  for (const i64 rank : group.ranks) {
    const Part<float>& header = headers.at(rank);
    const i64 count = header.width() * tokens;
    if (gathered.end() - next < count) {
      throw Error(ErrorCode::kInternal, "a process gathered fewer numbers than its devices have");
    }
    parts[rank] = {header.features, std::vector<float>(next, next + count)};
    next += count;
  }
  return parts;
}

}  // namespace shardtool::engine
