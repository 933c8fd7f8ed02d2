#include "lib/plan/pipeline.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace shardtool::plan {
namespace {

/// Ends of the latest passes of each rank.
struct StageEnds {
  std::vector<double> ahead;  ///< of the latest forward pass
  std::vector<double> all;    ///< of the latest pass
};

/// The passes of a step, row by row. A rank numbers its forward and its backward passes in the
/// order in which it does them. Row n of rank r of p, with v stages on each rank, has as far as
/// there are such passes
///
///     forward pass    n + (p - r - 1) + (v - 1) p
///     backward pass   n - (p - r - 1), or with v = 1 n
///
/// So a forward pass depends on the row before it alone, and a backward pass on that row too or,
/// with v = 1, on the next rank in its own row.
class PipelineRows {
 public:
  PipelineRows(std::span<const PipelineStage> stages, i64 micro_batches, i64 virtual_stages)
      : stages_(stages),
        ranks_(std::ssize(stages) / virtual_stages),
        rounds_(virtual_stages),
        passes_(micro_batches * virtual_stages),
        ends_{std::vector<double>(static_cast<size_t>(ranks_)),
              std::vector<double>(static_cast<size_t>(ranks_))},
        before_(ends_) {}

  std::vector<double> ends() && {
    const i64 lead = std::ssize(stages_) - 1;        // of the first rank's forward passes
    const i64 delay = rounds_ > 1 ? ranks_ - 1 : 0;  // of its backward passes
    for (i64 row = -lead; row < delay; ++row) do_row(row);
    // Before row passes_ - lead every rank has both passes in every row.
    const i64 done = do_full_rows(delay, passes_ - lead - delay);
    for (i64 row = delay + done; row < passes_ + delay; ++row) do_row(row);
    return std::move(ends_.all);
  }

 private:
  void do_row(i64 row) {
    before_ = ends_;
    for (i64 rank = ranks_; rank-- > 0;)
      go_ahead(rank, row + ranks_ - rank - 1 + (rounds_ - 1) * ranks_);
    for (i64 rank = ranks_; rank-- > 0;)
      go_back(rank, rounds_ > 1 ? row - (ranks_ - rank - 1) : row);
  }

  void go_ahead(i64 rank, i64 pass) {
    if (pass < 0 || pass >= passes_) return;
    const i64 stage = round_of(pass) * ranks_ + rank;
    double begin = ends_.all[at(rank)];
    if (stage > 0)
      begin = std::max(begin, before_.ahead[at((stage - 1) % ranks_)] + of(stage - 1).handoff);
    ends_.ahead[at(rank)] = ends_.all[at(rank)] = begin + of(stage).ahead;
  }

  void go_back(i64 rank, i64 pass) {
    if (pass < 0 || pass >= passes_) return;
    const i64 stage = (rounds_ - 1 - round_of(pass)) * ranks_ + rank;
    double begin = ends_.all[at(rank)];
    if (stage + 1 < std::ssize(stages_)) {
      const StageEnds& next = rounds_ > 1 ? before_ : ends_;
      begin = std::max(begin, next.all[at((stage + 1) % ranks_)] + of(stage).handoff);
    }
    ends_.all[at(rank)] = begin + of(stage).back;
  }

  /// Returns which of its stages a rank runs in this pass forward; backward they are in reverse.
  i64 round_of(i64 pass) const { return pass % std::ssize(stages_) / ranks_; }
  const PipelineStage& of(i64 stage) const { return stages_[at(stage)]; }
  static size_t at(i64 index) { return static_cast<size_t>(index); }

  /// Does rows from `first` on. Returns their number, at most `rows`.
  i64 do_full_rows(i64 first, i64 rows) {
    const i64 turn = rounds_ > 1 ? std::ssize(stages_) : 1;  // rows until the stages recur
    i64 row = first;
    const auto do_turn = [&] {
      for (const i64 end = row + turn; row < end; ++row) do_row(row);
    };
    return do_turns(std::max<i64>(0, rows) / turn, kMostPipelinePasses / (2 * ranks_ * turn) + 1,
                    do_turn) *
           turn;
  }

  /// Does at most `turns` turns, and follows at most `most` of them. Returns their number. They
  /// repeat themselves once all ends have grown alike since an earlier turn: what follows from ends
  /// that all are later by the same time is later by that time. Looks for such a turn at growing
  /// distances (Brent).
  template <class DoTurn>
  i64 do_turns(i64 turns, i64 most, DoTurn do_turn) {
    constexpr double kRounding = 1e-11;
    StageEnds then = ends_;
    i64 of_then = 0;
    i64 next = 1;
    for (i64 turn = 0; turn < turns;) {
      if (turn >= most) {
        then = ends_;
        of_then = turn;
      }
      do_turn();
      ++turn;
      const auto [least, largest] = growth_since(then);
      if (turn > most || largest - least <= kRounding * largest)
        return turn + skip(turns - turn, turn - of_then, largest);
      if (turn < next) continue;
      then = ends_;
      of_then = turn;
      next = 2 * turn;
    }
    return turns;
  }

  /// Returns the least and the largest growth of an end.
  std::pair<double, double> growth_since(const StageEnds& then) const {
    double least = std::numeric_limits<double>::infinity();
    double largest = 0;
    const auto add = [&](double growth) {
      least = std::min(least, growth);
      largest = std::max(largest, growth);
    };
    for (size_t rank = 0; rank < ends_.all.size(); ++rank) {
      add(ends_.ahead[rank] - then.ahead[rank]);
      add(ends_.all[rank] - then.all[rank]);
    }
    return {least, largest};
  }

  /// Lets as many periods pass as fit into `turns`. Returns their turns.
  i64 skip(i64 turns, i64 period, double growth) {
    const i64 periods = turns / period;
    for (auto* const each : {&ends_.ahead, &ends_.all}) {
      for (double& end : *each) end += static_cast<double>(periods) * growth;
    }
    return periods * period;
  }

  std::span<const PipelineStage> stages_;
  i64 ranks_;
  i64 rounds_;  ///< stages of a rank
  i64 passes_;  ///< of a rank, in each direction
  StageEnds ends_;
  StageEnds before_;  ///< ends of the row before
};

}  // namespace

PipelineStage& PipelineStage::operator+=(const PipelineStage& more) {
  ahead += more.ahead;
  back += more.back;
  handoff += more.handoff;
  after += more.after;
  return *this;
}

std::vector<double> pipeline_ends(std::span<const PipelineStage> stages, i64 micro_batches,
                                  i64 virtual_stages) {
  return PipelineRows(stages, micro_batches, virtual_stages).ends();
}

double pipeline_us(std::span<const PipelineStage> stages, i64 micro_batches, i64 virtual_stages) {
  std::vector<double> ends = pipeline_ends(stages, micro_batches, virtual_stages);
  for (size_t s = 0; s < stages.size(); ++s) ends[s % ends.size()] += stages[s].after;
  return *std::ranges::max_element(ends);
}

std::vector<std::vector<i64>> most_under_way(i64 ranks, i64 rank, i64 micro_batches,
                                             i64 virtual_stages) {
  if (virtual_stages == 1) return {{std::min(micro_batches, ranks - rank)}};
  const i64 of_turn = ranks * virtual_stages;
  const auto round_of = [&](i64 pass) { return static_cast<size_t>(pass % of_turn / ranks); };
  const i64 passes = micro_batches * virtual_stages;
  const i64 ahead = std::min(passes, 2 * (ranks - rank - 1) + (virtual_stages - 1) * ranks + 1);
  std::vector<i64> under_way(static_cast<size_t>(virtual_stages));
  for (i64 pass = 0; pass < ahead; ++pass) ++under_way[round_of(pass)];
  std::vector<std::vector<i64>> moments{under_way};
  for (i64 back = 0; back < of_turn && ahead + back < passes; ++back) {
    --under_way[under_way.size() - 1 - round_of(back)];
    ++under_way[round_of(ahead + back)];
    if (std::ranges::find(moments, under_way) == moments.end()) moments.push_back(under_way);
  }
  return moments;
}

}  // namespace shardtool::plan
