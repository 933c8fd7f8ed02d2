#include "cli/print/search/words.h"

#include <fmt/format.h>

#include <cmath>

#include "lib/base/text.h"
#include "lib/plan/collective/collective_time.h"

namespace shardtool::cli {

using plan::Objective;

std::string tokens_text(double tokens_per_s) {
  constexpr double kWhole = 10;
  const double rounded = plan::two_digits(tokens_per_s);
  return rounded < kWhole ? fmt::format("{:g}", rounded) : format_count(std::llround(rounded));
}

std::string value_text(double value, Objective objective) {
  constexpr double kUsPerSecond = 1e6;
  switch (objective) {
    case Objective::kThroughput:
    case Objective::kGoodput:
      return tokens_text(value) + " tokens/s per device";
    case Objective::kUser:
      return tokens_text(value) + " tokens/s per client";
    case Objective::kLatency:
      return plan::format_modelled_us(-value * kUsPerSecond) + " per answer";
    case Objective::kCost:
      return fmt::format("{:.3g} per million tokens", -value);
  }
  return {};
}

std::string_view beyond_bound(Objective objective) {
  const bool is_negative = objective == Objective::kLatency || objective == Objective::kCost;
  return is_negative ? "less" : "more";
}

std::string percent_text(double fraction) {
  constexpr double kPercent = 100;
  const double percent = kPercent * fraction;
  return percent < 1 ? fmt::format("{:.1g} %", percent) : fmt::format("{:.0f} %", percent);
}

bool is_tie(double loss) {
  constexpr double kNoise = 1e-9;
  return loss < kNoise;
}

std::string loss_words(double loss, std::string_view reason) {
  return is_tie(loss) ? kAsGood : fmt::format("{}: {}", percent_text(loss), reason);
}

std::string runner_up_words(const std::string& name, const std::string& best, double loss,
                            std::string_view reason) {
  if (is_tie(loss)) return fmt::format("{} is {} as {}", name, kAsGood, best);
  return fmt::format("{} loses to {} by {}", name, best, loss_words(loss, reason));
}

std::string row_name(std::string layout, const RowChoices& choices) {
  if (choices.sequence_parallel) layout += " sequence-parallel";
  if (!choices.kv_dtype.empty()) layout += fmt::format(", cache {}", choices.kv_dtype);
  if (!choices.source.empty()) layout += ", " + quote_for_message(choices.source);
  if (!choices.dtype.empty())
    layout += fmt::format("{} as {}", choices.source.empty() ? "," : "", choices.dtype);
  if (choices.cap) layout += fmt::format(", at most {} at once", format_count(*choices.cap));
  return layout;
}

}  // namespace shardtool::cli
