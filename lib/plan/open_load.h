#pragma once

#include <functional>
#include <optional>

#include "lib/base/checked.h"

/// Open loads: requests come at a rate, whether earlier ones have their answers or not.
namespace shardtool::plan {

/// Answers of a replica by the number of sequences that run at once.
struct AnswerTimes {
  i64 most = 1;  ///< sequences that can run at once
  /// Number of sequences that take a step together. With n sequences, answer_us(n) / n at a
  /// multiple of it is not above that of any smaller n. Between two multiples it may grow first,
  /// then it falls to the next one.
  i64 stride = 1;
  std::function<double(i64)> answer_us;
};

/// Returns the least number of sequences for which
///
///     sequences >= requests_per_s answer(sequences)
///
/// the fixed point of Little's law, rounded up to a whole sequence; nullopt if `times.most` are too
/// few. Rates that differ by rounding are equal. Asks for O(log of the number) answers.
std::optional<i64> running_at(double requests_per_s, const AnswerTimes& times);

/// Returns the greatest rate of requests for which running_at has a number.
double most_requests_per_s(const AnswerTimes& times);

}  // namespace shardtool::plan
