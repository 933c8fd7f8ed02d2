#pragma once

#include <algorithm>
#include <chrono>

#include "lib/base/checked.h"

namespace shardtool::store::s3 {

/// Time that a request has left, over all of its tries. It runs out, and comes back with the bytes
/// of bodies that pass in either direction, up to the whole of it.
///
/// D1 at kLeastSpeed or more it is never over, whatever the size of the request
/// D2 at a speed v below that, and from the start, it is over after whole / (1 - v / kLeastSpeed)
class Deadline {
 public:
  using Duration = std::chrono::nanoseconds;
  static constexpr i64 kLeastSpeed = 1024;  ///< bytes a second

  Deadline() = default;
  explicit Deadline(Duration whole) : whole_(whole), left_(whole) {}

  /// Notes that time has passed.
  void pass(Duration time) { left_ -= time; }
  /// Notes that bytes have passed.
  void move(i64 bytes) {
    const std::chrono::duration<double> worth(static_cast<double>(bytes) / kLeastSpeed);
    left_ = std::min(whole_, left_ + std::chrono::duration_cast<Duration>(worth));
  }
  bool is_over() const { return left_ <= Duration::zero(); }
  /// True if it will be over once so much more time has passed.
  bool is_over_after(Duration time) const { return left_ <= time; }

 private:
  Duration whole_{0};
  Duration left_{0};
};

}  // namespace shardtool::store::s3
