#include "shardtool/plan/renumbering.h"

#include <limits>

#include "shardtool/base/error.h"

namespace shardtool::plan {
namespace {

constexpr i64 kInfinite = std::numeric_limits<i64>::max() / 4;

/// Minimum-cost assignment of rows 1.. to columns 1..; column 0 stands for "the row that is being
/// placed". Potentials u, v keep cost - u - v >= 0, with equality on the chosen pairs.
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
  /// Relaxes the edges of the row at `from`, and goes on to the column of least slack.
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

}  // namespace

std::vector<i64> best_assignment(i64 rows, i64 columns, std::span<const i64> weights) {
  if (rows > columns || static_cast<i64>(weights.size()) != rows * columns)
    throw Error(ErrorCode::kInternal, "an assignment needs a column for every row");
  Hungarian hungarian(rows, columns, weights);
  for (i64 row = 1; row <= rows; ++row) hungarian.place(static_cast<size_t>(row));
  return hungarian.columns_of_rows(rows);
}

}  // namespace shardtool::plan
