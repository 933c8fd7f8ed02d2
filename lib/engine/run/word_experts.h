#pragma once

#include <vector>

#include "lib/engine/side.h"

namespace shardtool::engine {

/// The experts that a stored table names for every word, row after row.
class WordExperts {
 public:
  /// Reads the table, which every device has whole. Throws kUnsupported unless it has integers of
  /// 32 or 64 bits.
  WordExperts(const Side& side, size_t tensor, i64 rank);

  /// Copies the experts of one word, as many as a row has. Throws kShapeMismatch if the table lacks
  /// the row.
  void copy(i64 word, i64* experts) const;
  /// A sum of all that the table says, each times a random number.
  kernels::Field probe(std::uint64_t seed) const;

 private:
  i64 columns_ = 0;
  std::vector<i64> experts_;
};

}  // namespace shardtool::engine
