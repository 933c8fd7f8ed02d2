#pragma once

#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/comm/communicator.h"

namespace shardtool::comm {

/// Type that can be reduced: its bytes are its value.
template <class T>
concept Reducible = std::is_trivially_copyable_v<T>;

namespace reduce_detail {

template <Reducible T>
std::string_view bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

inline void require_bytes(const std::string& part, size_t bytes, size_t rank,
                          std::string_view operation) {
  if (part.size() == bytes) return;
  throw Error(ErrorCode::kInternal, std::string(operation) + ": process " + std::to_string(rank) +
                                        " gave " + std::to_string(part.size()) +
                                        " bytes, expected " + std::to_string(bytes));
}

/// ((part 0 op part 1) op part 2) op ..., element by element.
template <Reducible T, class Op>
void fold(const std::vector<std::string>& parts, std::span<T> result, Op& op,
          std::string_view operation) {
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    require_bytes(parts[rank], result.size_bytes(), rank, operation);
    if (result.empty()) continue;
    if (rank == 0) {
      std::memcpy(static_cast<void*>(result.data()), parts[0].data(), result.size_bytes());
      continue;
    }
    const char* at = parts[rank].data();
    for (T& value : result) {
      T other;
      std::memcpy(static_cast<void*>(&other), at, sizeof(T));
      at += sizeof(T);
      value = op(value, other);
    }
  }
}

}  // namespace reduce_detail

/// Larger of two, for all_reduce and reduce_scatter; the first if neither is larger, as with NaN.
struct Maximum {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};

/// values[i] = x[0][i] op x[1][i] op ... op x[size - 1][i], where x[r] is the input of rank r, in
/// this order for every engine and size: floating-point sums have the same bits on every engine.
/// Every rank gives the same number of values, else kInternal. Moves (size - 1) * values.size()
/// values to each process.
template <Reducible T, class Op = std::plus<>>
void all_reduce(Communicator& comm, std::span<T> values, Op op = {}) {
  const auto parts = comm.all_gather(reduce_detail::bytes_of<T>(values), Operation::kAllReduce);
  reduce_detail::fold(parts, values, op, "all_reduce");
}

/// This rank's range of the all_reduce result: `counts` has the number of values of each rank,
/// which may differ, and the ranges are consecutive. The counts are the same in every process and
/// sum to values.size(), else kInternal.
template <Reducible T, class Op = std::plus<>>
std::vector<std::remove_const_t<T>> reduce_scatter(Communicator& comm, std::span<T> values,
                                                   std::span<const size_t> counts, Op op = {}) {
  using Value = std::remove_const_t<T>;
  constexpr std::string_view kName = name_of(Operation::kReduceScatter);
  std::string_view left = reduce_detail::bytes_of<Value>(values);
  std::vector<std::string> to_each;
  for (const size_t count : counts) {
    to_each.emplace_back(left.substr(0, count * sizeof(Value)));
    reduce_detail::require_bytes(to_each.back(), count * sizeof(Value),
                                 static_cast<size_t>(comm.rank()), kName);
    left.remove_prefix(to_each.back().size());
  }
  reduce_detail::require_bytes(std::string(left), 0, static_cast<size_t>(comm.rank()), kName);
  const auto parts = comm.all_to_all(std::move(to_each), Operation::kReduceScatter);
  std::vector<Value> result(counts[static_cast<size_t>(comm.rank())]);
  reduce_detail::fold(parts, std::span<Value>(result), op, kName);
  return result;
}

}  // namespace shardtool::comm
