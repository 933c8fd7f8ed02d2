#pragma once

#include "lib/base/checked.h"

namespace shardtool::engine {

/// Number of calls of a collective, and of elements moved.
struct Counted {
  i64 count = 0;
  /// Sum over all calls. Each adds the elements that a group jointly owns, for the largest group; a
  /// permute adds those that one device sends.
  i64 elements = 0;

  bool operator==(const Counted&) const = default;
  Counted& operator+=(const Counted& other) {
    count += other.count;
    elements += other.elements;
    return *this;
  }
};

}  // namespace shardtool::engine
