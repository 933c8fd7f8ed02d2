#include "lib/plan/renumbering.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "lib/base/error.h"

namespace shardtool::plan {
namespace {

constexpr i64 kInfinite = std::numeric_limits<i64>::max() / 4;

/// Minimum-cost assignment of rows 1.. to columns 1..; column 0 is a sentinel for the row being
/// placed. Potentials u, v keep cost - u - v >= 0, with equality on the chosen pairs.
class Hungarian {
 public:
  Hungarian(i64 rows, i64 columns, std::span<const i64> weights)
      : columns_(static_cast<size_t>(columns)),
        weights_(weights),
        u_(static_cast<size_t>(rows) + 1, 0),
        v_(columns_ + 1, 0),
        row_of_(columns_ + 1, 0),
        before_(columns_ + 1, 0),
        slack_(columns_ + 1),
        done_(columns_ + 1) {}

  void place(size_t row) {
    row_of_[0] = row;
    slack_.assign(columns_ + 1, kInfinite);
    done_.assign(columns_ + 1, 0);
    size_t column = 0;
    do {
      done_[column] = 1;
      column = nearest(column);
    } while (row_of_[column] != 0);
    while (column != 0) {
      row_of_[column] = row_of_[before_[column]];
      column = before_[column];
    }
  }

  std::vector<i64> columns_of_rows(i64 rows) const {
    std::vector<i64> columns(static_cast<size_t>(rows), 0);
    for (size_t column = 1; column <= columns_; ++column) {
      if (row_of_[column] != 0) columns[row_of_[column] - 1] = static_cast<i64>(column) - 1;
    }
    return columns;
  }

 private:
  /// Relaxes the edges of the row at `from` and returns the column of least slack.
  size_t nearest(size_t from) {
    const size_t row = row_of_[from];
    const i64* weights = weights_.data() + (row - 1) * columns_;
    i64 least = kInfinite;
    size_t next = 0;
    for (size_t column = 1; column <= columns_; ++column) {
      if (done_[column] != 0) continue;
      const i64 reduced = -weights[column - 1] - u_[row] - v_[column];
      if (reduced < slack_[column]) {
        slack_[column] = reduced;
        before_[column] = from;
      }
      if (slack_[column] < least) {
        least = slack_[column];
        next = column;
      }
    }
    shift(least);
    return next;
  }

  void shift(i64 by) {
    if (by == 0) return;
    for (size_t column = 0; column <= columns_; ++column) {
      if (done_[column] != 0) {
        u_[row_of_[column]] += by;
        v_[column] -= by;
      } else {
        slack_[column] -= by;
      }
    }
  }

  size_t columns_;
  std::span<const i64> weights_;
  std::vector<i64> u_;
  std::vector<i64> v_;
  std::vector<size_t> row_of_;
  std::vector<size_t> before_;
  std::vector<i64> slack_;
  std::vector<char> done_;
};

void require_columns(i64 rows, i64 columns, std::span<const i64> weights) {
  if (rows > columns || static_cast<i64>(weights.size()) != rows * columns)
    throw Error(ErrorCode::kInternal, "an assignment needs a column for every row");
}

/// Weight above its row's minimum, which any column gives.
struct Gain {
  i64 weight = 0;
  i64 row = 0;
  i64 column = 0;
};

std::vector<Gain> gains(i64 rows, i64 columns, std::span<const i64> weights) {
  std::vector<Gain> found;
  for (i64 row = 0; row < rows; ++row) {
    const auto of_row =
        weights.subspan(static_cast<size_t>(row * columns), static_cast<size_t>(columns));
    const i64 least = *std::min_element(of_row.begin(), of_row.end());
    for (i64 column = 0; column < columns; ++column) {
      const i64 weight = of_row[static_cast<size_t>(column)] - least;
      if (weight > 0) found.push_back({weight, row, column});
    }
  }
  return found;
}

}  // namespace

std::vector<i64> greedy_assignment(i64 rows, i64 columns, std::span<const i64> weights) {
  require_columns(rows, columns, weights);
  std::vector<Gain> sorted = gains(rows, columns, weights);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Gain& a, const Gain& b) { return a.weight > b.weight; });
  constexpr i64 kNone = -1;
  std::vector<i64> column_of(static_cast<size_t>(rows), kNone);
  std::vector<bool> taken(static_cast<size_t>(columns));
  for (const Gain& gain : sorted) {
    i64& column = column_of[static_cast<size_t>(gain.row)];
    if (column != kNone || taken[static_cast<size_t>(gain.column)]) continue;
    column = gain.column;
    taken[static_cast<size_t>(gain.column)] = true;
  }
  i64 free = 0;
  for (i64& column : column_of) {
    if (column != kNone) continue;
    while (taken[static_cast<size_t>(free)]) ++free;
    column = free++;
  }
  return column_of;
}

i64 assignment_bound(i64 rows, i64 columns, std::span<const i64> weights) {
  require_columns(rows, columns, weights);
  i64 by_rows = 0;
  std::vector<i64> largest(static_cast<size_t>(columns), 0);
  for (i64 row = 0; row < rows; ++row) {
    i64 most = 0;
    for (i64 column = 0; column < columns; ++column) {
      const i64 weight = weights[static_cast<size_t>(row * columns + column)];
      most = std::max(most, weight);
      largest[static_cast<size_t>(column)] = std::max(largest[static_cast<size_t>(column)], weight);
    }
    by_rows += most;
  }
  return std::min(by_rows, std::accumulate(largest.begin(), largest.end(), i64{0}));
}

std::vector<i64> best_assignment(i64 rows, i64 columns, std::span<const i64> weights) {
  require_columns(rows, columns, weights);
  Hungarian hungarian(rows, columns, weights);
  for (i64 row = 1; row <= rows; ++row) hungarian.place(static_cast<size_t>(row));
  return hungarian.columns_of_rows(rows);
}

}  // namespace shardtool::plan
