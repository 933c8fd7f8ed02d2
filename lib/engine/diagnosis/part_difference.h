#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/engine/weights/stored_part.h"

namespace shardtool::engine {

/// How the elements of one stored matrix differ from those that it is to have; padding does not
/// count.
///
/// D1 `rows` and `columns` have one entry per local index; differing > 0
struct PartDifference {
  enum class Row : std::uint8_t { kSame, kDiffers, kZero };  ///< kZero: differs, and is all zeros

  StoredPart part;
  i64 outer = 0;            ///< local number of the first matrix that differs
  std::vector<i64> outers;  ///< of all that differ
  std::vector<Row> rows;
  std::vector<bool> columns;
  i64 elements = 0;  ///< of the matrix, without padding
  i64 differing = 0;
  i64 first_row = -1;  ///< local
  i64 first_column = -1;
  std::uint64_t found = 0;  ///< the bits of the first element that differs
  std::uint64_t expected = 0;

  // Over the elements that differ, as numbers of their dtype:
  i64 nan = 0;
  i64 infinite = 0;
  i64 reversed = 0;        ///< the expected bytes, last first
  i64 opposite = 0;        ///< the expected number with the other sign
  i64 nearer_zero = 0;     ///< smaller, of the same sign
  i64 most_steps = 0;      ///< largest distance in representable numbers; of floats
  double least_ratio = 0;  ///< of what is found to what is expected, where that is not 0
  double most_ratio = 0;
  double most_relative = 0;  ///< largest |difference| over the largest |expected|
};

/// Nothing when every byte of the part is as it is to be.
std::optional<PartDifference> part_difference(const Side& whole, const Side& shards,
                                              const StoredPart& part);

/// "0.0123 instead of 0.0122 (1 ulp)".
std::string element_text(Dtype dtype, std::uint64_t found, std::uint64_t expected);

}  // namespace shardtool::engine
