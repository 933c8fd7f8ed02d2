#include "lib/plan/pipeline.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace shardtool::plan {
namespace {

/// Ends of the latest passes of each stage.
struct StageEnds {
  std::vector<double> ahead;  ///< of the latest forward pass
  std::vector<double> all;    ///< of the latest pass
};

/// The passes of a step, row by row. Row r has backward pass r of every stage, and before it
/// forward pass r + p - s - 1 of stage s, as far as there are such passes. So a row depends on
/// the row before it alone. The first p - 1 rows have negative numbers and no backward passes.
class PipelineRows {
 public:
  PipelineRows(std::span<const PipelineStage> stages, i64 micro_batches)
      : stages_(stages),
        last_(stages.size() - 1),
        micro_batches_(micro_batches),
        ends_{std::vector<double>(stages.size()), std::vector<double>(stages.size())} {}

  std::vector<double> ends() && {
    const auto before = static_cast<i64>(last_);
    for (i64 row = -before; row < 0; ++row) do_row(row);
    // Up to here every stage has both passes in every row.
    for (i64 row = do_full_rows(micro_batches_ - before); row < micro_batches_; ++row) do_row(row);
    return std::move(ends_.all);
  }

 private:
  void do_row(i64 row) {
    for (size_t s = last_ + 1; s-- > 0;) {
      const i64 pass = row + static_cast<i64>(last_ - s);
      if (pass < 0 || pass >= micro_batches_) continue;
      double begin = ends_.all[s];
      if (s > 0) begin = std::max(begin, ends_.ahead[s - 1] + stages_[s - 1].handoff);
      ends_.ahead[s] = ends_.all[s] = begin + stages_[s].ahead;
    }
    if (row < 0) return;
    for (size_t s = last_ + 1; s-- > 0;) {
      double begin = ends_.all[s];
      if (s < last_) begin = std::max(begin, ends_.all[s + 1] + stages_[s].handoff);
      ends_.all[s] = begin + stages_[s].back;
    }
  }

  /// Does rows from 0 on. Returns their number, at most `rows`. They repeat themselves once all
  /// ends have grown alike since an earlier row: what follows from ends that all are later by the
  /// same time is later by that time. Looks for such a row at growing distances (Brent).
  i64 do_full_rows(i64 rows) {
    constexpr double kRounding = 1e-11;
    const i64 most = kMostPipelinePasses / (2 * std::ssize(stages_)) + 1;
    StageEnds before = ends_;
    i64 of_before = 0;
    i64 next = 1;
    for (i64 row = 0; row < rows;) {
      if (row >= most) {
        before = ends_;
        of_before = row;
      }
      do_row(row++);
      const auto [least, largest] = growth_since(before);
      if (row > most || largest - least <= kRounding * largest)
        return row + skip(rows - row, row - of_before, largest);
      if (row < next) continue;
      before = ends_;
      of_before = row;
      next = 2 * row;
    }
    return std::max<i64>(0, rows);
  }

  /// Returns the least and the largest growth of an end.
  std::pair<double, double> growth_since(const StageEnds& before) const {
    double least = std::numeric_limits<double>::infinity();
    double largest = 0;
    const auto add = [&](double growth) {
      least = std::min(least, growth);
      largest = std::max(largest, growth);
    };
    for (size_t s = 0; s <= last_; ++s) {
      add(ends_.ahead[s] - before.ahead[s]);
      add(ends_.all[s] - before.all[s]);
    }
    return {least, largest};
  }

  /// Lets as many periods pass as fit into `rows`. Returns their rows.
  i64 skip(i64 rows, i64 period, double growth) {
    const i64 periods = rows / period;
    for (auto* const each : {&ends_.ahead, &ends_.all}) {
      for (double& end : *each) end += static_cast<double>(periods) * growth;
    }
    return periods * period;
  }

  std::span<const PipelineStage> stages_;
  size_t last_;
  i64 micro_batches_;
  StageEnds ends_;
};

}  // namespace

std::vector<double> pipeline_ends(std::span<const PipelineStage> stages, i64 micro_batches) {
  return PipelineRows(stages, micro_batches).ends();
}

double pipeline_us(std::span<const PipelineStage> stages, i64 micro_batches) {
  const std::vector<double> ends = pipeline_ends(stages, micro_batches);
  double us = 0;
  for (size_t s = 0; s < ends.size(); ++s) us = std::max(us, ends[s] + stages[s].after);
  return us;
}

}  // namespace shardtool::plan
