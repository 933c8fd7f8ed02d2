#include "lib/engine/diagnosis/element_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "lib/base/text.h"

namespace shardtool::engine {
namespace {

using Row = PartDifference::Row;
using Text = std::optional<std::string>;

bool is_vector(const StoredPart& part) {
  return part.columns.global_size() == 1;
}

/// "7", or "1, 0, 1" for several axes.
std::string column_text(i64 column, const Shape& inner) {
  std::string text;
  for (size_t axis = inner.size(); axis > 0; --axis) {
    text = fmt::format(", {}{}", column % inner[axis - 1], text);
    column /= inner[axis - 1];
  }
  return fmt::format("{}{}", column, text);
}

/// Global position of an element: "[5]", "[3, 7]", "[0, 3, 7]".
std::string place(const PartDifference& d) {
  const StoredPart& part = d.part;
  std::string text = "[";
  if (part.has_outer) text += fmt::format("{}, ", part.outer(d.outer).value_or(-1));
  text += fmt::format("{}", part.rows(d.first_row).value_or(-1));
  if (is_vector(part)) return text + "]";
  const i64 column = part.columns(d.first_column).value_or(-1);
  return fmt::format("{}, {}]", text, column_text(column, part.inner));
}

/// Global positions of the marked local lines.
template <class Marked>
index::AxisMap places(const index::AxisMap& map, const Marked& marked) {
  std::vector<index::Piece> pieces;
  for (const index::Piece& piece : map.pieces()) {
    for (i64 i = 0; i < piece.size; ++i) {
      if (marked(piece.local + i)) pieces.push_back({piece.local + i, piece.global + i, 1});
    }
  }
  return {map.local_size(), map.global_size(), std::move(pieces)};
}

/// "rows [62, 64)", or a count if there are many ranges.
std::string lines_text(const char* line, const index::AxisMap& lines) {
  constexpr size_t kMostStretches = 4;
  if (lines.pieces().size() > kMostStretches) {
    return fmt::format("{} {}s", format_count(lines.image_size()), line);
  }
  std::string text;
  for (const index::Piece& piece : lines.pieces()) {
    text += fmt::format("{}[{}, {})", text.empty() ? "" : " ", piece.global, piece.global_end());
  }
  return fmt::format("{}s {}", line, text);
}

/// Smallest range of local lines that contains all differing ones.
index::Interval hull(i64 n, const std::function<bool(i64)>& differs) {
  index::Interval lines{n, 0};
  for (i64 i = 0; i < n; ++i) {
    if (!differs(i)) continue;
    lines.begin = std::min(lines.begin, i);
    lines.end = i + 1;
  }
  return lines;
}

}  // namespace

Text describe_zeros(const PartDifference& d) {
  const bool all_zero =
      std::none_of(d.rows.begin(), d.rows.end(), [](Row row) { return row == Row::kDiffers; });
  if (!all_zero || d.nan + d.infinite > 0) return std::nullopt;
  const auto zero =
      places(d.part.rows, [&](i64 r) { return d.rows[static_cast<size_t>(r)] == Row::kZero; });
  if (zero.image_size() == d.part.rows.image_size()) return "is all zeros";
  // A single zero is described together with its expected value.
  if (is_vector(d.part) && zero.image_size() == 1) return std::nullopt;
  const char* line = is_vector(d.part) ? "element" : "row";
  return lines_text(line, zero) + (zero.image_size() == 1 ? " is zero" : " are zero");
}

Text describe_single(const PartDifference& d) {
  if (d.differing == 1) {
    return fmt::format("element {} is {}", place(d),
                       element_text(d.part.dtype, d.found, d.expected));
  }
  if (d.nan + d.infinite == 0) return std::nullopt;
  return fmt::format("has {} NaN and {} infinite numbers that are to be others, the first at {}",
                     format_count(d.nan), format_count(d.infinite), place(d));
}

Text describe_factor(const PartDifference& d) {
  if (d.differing < 2) return std::nullopt;
  if (d.reversed == d.differing && d.part.element_bytes() > 1) return "bytes are reversed";
  constexpr double kRounding = 1.0 / 256;  // of the coarsest bias format
  const double ratio = d.most_ratio;
  if (std::isnan(ratio) || ratio == 0) return std::nullopt;
  if (std::abs(d.most_ratio - d.least_ratio) > kRounding * std::abs(ratio)) return std::nullopt;
  const auto is_whole = [](double x) {
    return std::abs(x - std::round(x)) <= kRounding * std::abs(x) && std::abs(x) >= 1.5;
  };
  if (d.opposite == d.differing) return "has the opposite sign";
  if (is_whole(ratio)) return fmt::format("is counted {} times", std::round(ratio));
  if (is_whole(1 / ratio)) return fmt::format("is divided by {}", std::round(1 / ratio));
  return std::nullopt;
}

Text describe_rounding(const PartDifference& d) {
  constexpr i64 kMostSteps = 2;
  if (d.most_steps > kMostSteps) return std::nullopt;
  return fmt::format("{} elements differ by at most {} ulp{}, the first {} is {}",
                     format_count(d.differing), d.most_steps,
                     d.nearer_zero == d.differing ? ", all nearer to zero" : "", place(d),
                     element_text(d.part.dtype, d.found, d.expected));
}

Text describe_transposition(const Side& whole, const Side& shards, const PartDifference& d) {
  const index::Interval rows = hull(d.part.rows.local_size(), [&](i64 r) {
    return d.rows[static_cast<size_t>(r)] != Row::kSame;
  });
  const index::Interval columns =
      hull(d.part.columns.local_size(), [&](i64 c) { return d.columns[static_cast<size_t>(c)]; });
  constexpr i64 kMostBytes = 32 << 20;
  const i64 n = rows.size();
  const i64 size = d.part.element_bytes();
  const i64 width = d.part.row_bytes();
  if (n != columns.size() || n < 2 || n * width > kMostBytes) return std::nullopt;
  const auto matrix = expected_matrix(d.part, d.outer);
  const ByteRows found = stored_rows(shards, d.part, d.outer, rows.begin, rows.end);
  const ByteRows expected = whole_rows(whole, *matrix, rows.begin, rows.end);
  for (i64 r = 0; r < n; ++r) {
    for (i64 c = 0; c < n; ++c) {
      const std::byte* here = found.data() + r * width + (columns.begin + c) * size;
      const std::byte* there = expected.data() + c * width + (columns.begin + r) * size;
      if (std::memcmp(here, there, static_cast<size_t>(size)) != 0) return std::nullopt;
    }
  }
  if (n == d.part.rows.local_size() && n == d.part.columns.local_size()) return "is transposed";
  const auto in = [](index::Interval lines) {
    return [lines](i64 i) { return i >= lines.begin && i < lines.end; };
  };
  return fmt::format("{} x {} are transposed", lines_text("row", places(d.part.rows, in(rows))),
                     lines_text("column", places(d.part.columns, in(columns))));
}

std::string describe_difference(const PartDifference& d) {
  return fmt::format("{} of {} elements differ, by up to {:.2g} of the largest; the first {} is {}",
                     format_count(d.differing), format_count(d.elements), d.most_relative, place(d),
                     element_text(d.part.dtype, d.found, d.expected));
}

}  // namespace shardtool::engine
