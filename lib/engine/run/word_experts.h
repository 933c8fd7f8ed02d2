#pragma once

#include <vector>

#include "lib/engine/side.h"

namespace shardtool::engine {

/// A stored table with the experts of every word, one row per word.
class WordExperts {
 public:
  /// Reads the table, which every device has whole. Throws kUnsupported unless its dtype is a
  /// 32-bit or 64-bit integer.
  WordExperts(const Side& side, size_t tensor, i64 rank);

  /// Copies the experts of one word, one per column. Throws kShapeMismatch if the table has no such
  /// row.
  void copy(i64 word, i64* experts) const;
  /// Sum of all entries of the table, each times a random number.
  kernels::Field probe(std::uint64_t seed) const;

 private:
  i64 columns_ = 0;
  std::vector<i64> experts_;
};

}  // namespace shardtool::engine
