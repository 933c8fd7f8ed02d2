#include "lib/plan/open_load.h"

#include <algorithm>

#include "lib/plan/collective/time_table.h"

namespace shardtool::plan {
namespace {

/// Returns the least number that holds, of those above `fails` and up to `holds`.
template <class Test>
i64 least(i64 fails, i64 holds, const Test& test) {
  while (holds - fails > 1) {
    const i64 middle = fails + (holds - fails) / 2;
    (test(middle) ? holds : fails) = middle;
  }
  return holds;
}

double requests_per_s(i64 running, const AnswerTimes& times) {
  return static_cast<double>(running) / times.answer_us(running) * kUsPerSecond;
}

}  // namespace

std::optional<i64> running_at(double rate, const AnswerTimes& times) {
  constexpr double kNearlyOne = 1 - 1e-12;  // rates have the errors of rounding
  const auto keeps_up = [&](i64 running) {
    return requests_per_s(running, times) >= kNearlyOne * rate;
  };
  const auto stride_keeps_up = [&](i64 strides) { return keeps_up(strides * times.stride); };
  const i64 whole = times.most / times.stride;
  i64 few = 0;
  for (i64 strides = std::min<i64>(1, whole); few < whole; strides = std::min(2 * strides, whole)) {
    if (stride_keeps_up(strides)) {
      const i64 enough = least(few, strides, stride_keeps_up) * times.stride;
      return least(enough - times.stride, enough, keeps_up);
    }
    few = strides;
  }
  if (!keeps_up(times.most)) return std::nullopt;
  return least(whole * times.stride, times.most, keeps_up);
}

double most_requests_per_s(const AnswerTimes& times) {
  const i64 strides = times.most / times.stride * times.stride;
  const double of_all = requests_per_s(times.most, times);
  return strides == 0 ? of_all : std::max(of_all, requests_per_s(strides, times));
}

}  // namespace shardtool::plan
