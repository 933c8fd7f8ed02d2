#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/checked.h"
#include "lib/plan/offer.h"

namespace shardtool::cli {

/// Words of a search's report, whatever its form.

/// Formats tokens per second with two significant digits.
std::string tokens_text(double tokens_per_s);
/// Formats a value of the objective (plan::value_of) with its unit.
std::string value_text(double value, plan::Objective objective);
/// "more" or "less", than which no layout has of a value as value_text shows it.
std::string_view beyond_bound(plan::Objective objective);
/// Formats a fraction as "12 %", or "0.3 %" below one percent.
std::string percent_text(double fraction);

inline constexpr const char* kAsGood = "as good";
/// True for a loss of nothing but rounding: two rows are equally good.
bool is_tie(double loss);
/// "35 %: collectives"; kAsGood for a tie.
std::string loss_words(double loss, std::string_view reason);
/// "tp=8 loses to tp=4 by 35 %: collectives"; "tp=8 is as good as tp=4" for a tie.
std::string runner_up_words(const std::string& name, const std::string& best, double loss,
                            std::string_view reason);

/// Words for a row beside its layout. Empty texts are left out.
struct RowChoices {
  bool sequence_parallel = false;
  std::string_view kv_dtype;
  std::string_view source;
  std::string_view dtype = {};  ///< to which the weights are cast
  std::optional<i64> cap = {};  ///< of sequences that a replica runs at once
};
/// "dp=2 tp=4 sequence-parallel, cache fp8, 'llama-fp8' as BF16, at most 64 at once".
std::string row_name(std::string layout, const RowChoices& choices);

}  // namespace shardtool::cli
