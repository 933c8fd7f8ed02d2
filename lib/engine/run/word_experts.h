#pragma once

#include <vector>

#include "lib/engine/ops/apply.h"

namespace shardtool::engine {

/// The experts that a stored table names for every word, row after row.
class WordExperts {
 public:
  /// Of what the device has, which is all of it. Throws kUnsupported where these are no integers of
  /// 32 or 64 bits.
  WordExperts(const Side& side, size_t tensor, i64 rank);

  /// Those of one word, as many as a row has. Throws kShapeMismatch where the table has no such
  /// row.
  void copy(i64 word, i64* experts) const;
  /// A sum of all that the table says, each times a random number.
  kernels::Field probe(std::uint64_t seed) const;

 private:
  i64 columns_ = 0;
  std::vector<i64> experts_;
};

}  // namespace shardtool::engine
