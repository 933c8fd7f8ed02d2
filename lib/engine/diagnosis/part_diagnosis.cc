#include "lib/engine/diagnosis/part_diagnosis.h"

#include <optional>

#include "lib/engine/diagnosis/element_faults.h"
#include "lib/engine/diagnosis/line_hashes.h"
#include "lib/engine/diagnosis/other_tensor.h"
#include "lib/engine/run/held_order.h"

namespace shardtool::engine {
namespace {

using Text = std::optional<std::string>;

enum class Line { kOuter, kRow, kColumn };

/// Expected indices of one axis on the other devices.
std::map<i64, index::AxisMap> others(const Side& shards, const StoredPart& part, Line line) {
  std::map<i64, index::AxisMap> maps;
  for (const i64 rank : shards.layouts(part.tensor).ranks()) {
    if (rank == part.rank) continue;
    const index::Region region = shards.region(part.tensor, rank);
    const size_t first = part.has_outer ? 1 : 0;
    const size_t axis = line == Line::kOuter ? 0 : line == Line::kRow ? first : first + 1;
    maps[rank] = axis < region.size() ? region[axis] : index::AxisMap::identity(1);
  }
  return maps;
}

Text describe_order(const Side& shards, const StoredPart& part, Line line, std::vector<i64> held,
                    const TensorPlace& place) {
  const bool is_vector = part.columns.global_size() == 1;
  const std::string index = line == Line::kOuter    ? "matrix"
                            : line == Line::kColumn ? "column"
                            : is_vector             ? "element"
                                                    : "row";
  const size_t first = part.has_outer ? 1 : 0;
  const size_t axis = line == Line::kOuter ? 0 : line == Line::kRow ? first : first + 1;
  const AxisWords words = words_of(shards, part.tensor, axis, index, place.sections);
  const index::AxisMap& expected = line == Line::kOuter ? part.outer
                                   : line == Line::kRow ? part.rows
                                                        : part.columns;
  return describe({part.rank, expected, std::move(held), others(shards, part, line)}, words);
}

Text describe_outer(const Side& whole, const Side& shards, const PartDifference& d,
                    const TensorPlace& place) {
  if (!d.part.has_outer) return std::nullopt;
  auto matrix = expected_matrix(d.part, d.outer);
  LineHashes found, table;
  for (i64 o = 0; o < d.part.outer.local_size(); ++o) {
    found.push_back(hash_of(stored_row_hashes(shards, d.part, o)));
  }
  for (matrix->outer = 0; matrix->outer < d.part.outer.global_size(); ++matrix->outer) {
    table.push_back(hash_of(whole_row_hashes(whole, *matrix)));
  }
  return describe_order(shards, d.part, Line::kOuter, held_lines(found, d.part.outer, table),
                        place);
}

Text describe_rows(const Side& whole, const Side& shards, const PartDifference& d,
                   const TensorPlace& place) {
  auto all = *expected_matrix(d.part, d.outer);
  all.rows = index::AxisMap::identity(d.part.rows.global_size());
  auto held = held_lines(stored_row_hashes(shards, d.part, d.outer), d.part.rows,
                         whole_row_hashes(whole, all));
  return describe_order(shards, d.part, Line::kRow, std::move(held), place);
}

Text describe_columns(const Side& whole, const Side& shards, const PartDifference& d,
                      const TensorPlace& place) {
  if (d.part.columns.global_size() == 1) return std::nullopt;
  auto all = *expected_matrix(d.part, d.outer);
  all.columns = index::AxisMap::identity(d.part.columns.global_size());
  auto held = held_lines(stored_column_hashes(shards, d.part, d.outer), d.part.columns,
                         whole_column_hashes(whole, all));
  return describe_order(shards, d.part, Line::kColumn, std::move(held), place);
}

/// Detects a part that was cut from the transposed tensor.
Text describe_turned(const Side& whole, const Side& shards, const PartDifference& d) {
  const StoredPart& part = d.part;
  const bool is_square = part.rows.global_size() == part.columns.global_size();
  const bool by_rows = part.columns.is_identity();
  if (!is_square || (!by_rows && !part.rows.is_identity())) return std::nullopt;
  auto all = *expected_matrix(part, d.outer);
  all.rows = all.columns = index::AxisMap::identity(part.rows.global_size());
  const LineHashes found = by_rows ? stored_row_hashes(shards, part, d.outer)
                                   : stored_column_hashes(shards, part, d.outer);
  const LineHashes other = by_rows ? whole_column_hashes(whole, all) : whole_row_hashes(whole, all);
  const index::AxisMap& lines = by_rows ? part.rows : part.columns;
  for (const index::Piece& piece : lines.pieces()) {
    for (i64 i = 0; i < piece.size; ++i) {
      if (found[static_cast<size_t>(piece.local + i)] !=
          other[static_cast<size_t>(piece.global + i)]) {
        return std::nullopt;
      }
    }
  }
  return "is transposed";
}

}  // namespace

std::string describe(const Side& whole, const Side& shards, const PartDifference& d,
                     const TensorPlace& place) {
  const bool is_vector = d.part.columns.global_size() == 1;
  for (const auto simple : {describe_zeros, describe_factor, describe_single}) {
    if (Text text = simple(d)) return *text;
  }
  // In a vector any number may match by chance, so an order is not searched.
  if (is_vector) {
    if (Text text = describe_rounding(d)) return *text;
  }
  if (Text text = describe_outer(whole, shards, d, place)) return *text;
  if (Text text = describe_other_tensor(whole, shards, d, place)) return *text;
  const bool cuts_columns = d.part.rows.is_identity() && !d.part.columns.is_identity();
  const auto first = cuts_columns ? describe_columns : describe_rows;
  const auto second = cuts_columns ? describe_rows : describe_columns;
  if (Text text = first(whole, shards, d, place)) return *text;
  if (Text text = second(whole, shards, d, place)) return *text;
  if (Text text = describe_turned(whole, shards, d)) return *text;
  if (Text text = describe_transposition(whole, shards, d)) return *text;
  if (Text text = describe_rounding(d)) return *text;
  return describe_difference(d);
}

}  // namespace shardtool::engine
