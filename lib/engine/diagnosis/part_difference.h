#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/engine/weights/stored_part.h"

namespace shardtool::engine {

/// Differences between a stored matrix and its expected content; padding is ignored.
///
/// D1 `rows` and `columns` have one entry per local index; differing > 0
struct PartDifference {
  enum class Row : std::uint8_t { kSame, kDiffers, kZero };  ///< kZero: differs and is all zeros

  StoredPart part;
  i64 outer = 0;            ///< local index of the first matrix that differs
  std::vector<i64> outers;  ///< all matrices that differ
  std::vector<Row> rows;
  std::vector<bool> columns;
  i64 elements = 0;  ///< of the matrix, without padding
  i64 differing = 0;
  i64 first_row = -1;  ///< local
  i64 first_column = -1;
  std::uint64_t found = 0;  ///< bits of the first element that differs
  std::uint64_t expected = 0;

  // Over the elements that differ, as numbers of their dtype:
  i64 nan = 0;
  i64 infinite = 0;
  i64 reversed = 0;        ///< equal to the expected bytes in reverse order
  i64 opposite = 0;        ///< equal to the expected number with the opposite sign
  i64 nearer_zero = 0;     ///< smaller magnitude, same sign
  i64 most_steps = 0;      ///< floats: largest distance in representable numbers
  double least_ratio = 0;  ///< found / expected, for expected numbers other than 0
  double most_ratio = 0;
  double most_relative = 0;  ///< largest |difference| over the largest |expected|
};

/// Returns nullopt if every byte of the part is as expected.
std::optional<PartDifference> part_difference(const Side& whole, const Side& shards,
                                              const StoredPart& part);

/// "0.0123 instead of 0.0122 (1 ulp)".
std::string element_text(Dtype dtype, std::uint64_t found, std::uint64_t expected);

}  // namespace shardtool::engine
