#include "lib/comm/call_time.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "lib/base/median.h"
#include "lib/comm/reduce.h"

namespace shardtool::comm {
namespace {

/// One call with buffers allocated in advance.
std::function<void()> call_of(Communicator& comm, Operation operation, i64 bytes) {
  const int size = comm.size();
  const std::string all(static_cast<size_t>(bytes), 'x');
  const std::string share(static_cast<size_t>(ceil_div(bytes, size)), 'x');
  std::vector<float> numbers(all.size() / sizeof(float), 1);
  switch (operation) {
    case Operation::kAllGather:
      return [&comm, share] { comm.all_gather(share); };
    case Operation::kAllToAll:
      return [&comm, share, size] {
        comm.all_to_all(std::vector<std::string>(static_cast<size_t>(size), share));
      };
    case Operation::kBroadcast:
      // Each rank in turn is the root, so that a call cannot begin before the previous one has
      // arrived.
      return [&comm, all, size, from = 0]() mutable {
        comm.broadcast(from, comm.rank() == from ? all : std::string());
        from = (from + 1) % size;
      };
    case Operation::kSend:
      return [&comm, all, size] {
        comm.send((comm.rank() + 1) % size, all);
        comm.receive((comm.rank() + size - 1) % size);
      };
    case Operation::kAllReduce:
      if (comm.has_native_sums(Dtype::kF32)) {
        return [&comm, numbers]() mutable {
          comm.native_all_reduce(Dtype::kF32, std::as_writable_bytes(std::span(numbers)));
        };
      }
      return [&comm, numbers]() mutable { all_reduce(comm, std::span<float>(numbers)); };
    case Operation::kReduceScatter: {
      if (comm.has_native_sums(Dtype::kF32)) {
        const auto unit = static_cast<i64>(sizeof(float)) * size;
        return
            [&comm, values = std::string(static_cast<size_t>(ceil_div(bytes, unit) * unit), '\0')] {
              comm.native_reduce_scatter(Dtype::kF32, values);
            };
      }
      std::vector<size_t> counts(static_cast<size_t>(size));
      for (size_t i = 0; i < counts.size(); ++i) counts[i] = (numbers.size() + i) / counts.size();
      return [&comm, numbers, counts]() mutable {
        reduce_scatter(comm, std::span<float>(numbers), counts);
      };
    }
    default:
      throw Error(ErrorCode::kInternal, "this operation has no time of its own");
  }
}

/// Maximum over all processes.
double most(Communicator& comm, double mine) {
  all_reduce<double>(comm, std::span(&mine, 1), [](double a, double b) { return std::max(a, b); });
  return mine;
}

double seconds_of(Communicator& comm, const std::function<void()>& call, i64 times) {
  comm.barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (i64 i = 0; i < times; ++i) call();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return most(comm, took.count()) / static_cast<double>(times);
}

}  // namespace

double call_us(Communicator& comm, Operation operation, i64 bytes, i64 rounds) {
  constexpr double kRoundSeconds = 2e-3;
  constexpr double kMostCalls = 100;
  constexpr double kUsPerSecond = 1e6;
  const auto call = call_of(comm, operation, bytes);
  const double first = seconds_of(comm, call, 1);
  const auto times = static_cast<i64>(std::clamp(kRoundSeconds / first, 1.0, kMostCalls));
  std::vector<double> seconds;
  for (i64 round = 0; round < rounds; ++round) seconds.push_back(seconds_of(comm, call, times));
  return median(std::move(seconds)) * kUsPerSecond;
}

}  // namespace shardtool::comm
