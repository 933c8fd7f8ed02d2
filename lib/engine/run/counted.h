#pragma once

#include "lib/base/checked.h"

namespace shardtool::engine {

/// The number of calls of a collective, and of numbers that it moved.
struct Counted {
  i64 count = 0;
  /// Over all calls: what a group jointly owns, of the largest group; of a permute what one device
  /// sends.
  i64 elements = 0;

  bool operator==(const Counted&) const = default;
  Counted& operator+=(const Counted& other) {
    count += other.count;
    elements += other.elements;
    return *this;
  }
};

}  // namespace shardtool::engine
