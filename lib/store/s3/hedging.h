#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>

#include "lib/base/checked.h"

namespace shardtool::store::s3 {

/// Decides when a request for bytes of an object is slow, so that it is sent a second time (Dean
/// and Barroso, "The Tail at Scale", CACM 56(2), 2013: hedged requests). Threads may share it.
///
/// A request is slow after twice the time in which 95 of 100 of the last ones came, those for more
/// bytes later, and not before a least time.
///
/// P1 second requests are at most 5 % of the requests whose bytes came; there is none before the
///    20th
class Hedging {
 public:
  using Duration = std::chrono::nanoseconds;

  explicit Hedging(Duration least) : least_(least) {}

  /// Notes a request whose bytes all came.
  void finished(i64 bytes, Duration took);
  /// Time after which a request for so many bytes is slow; nullopt while none may be sent again.
  std::optional<Duration> slow_after(i64 bytes) const;
  /// Counts a second request. False if it would be one too many.
  bool take();
  /// Number of second requests.
  i64 taken() const;

 private:
  static constexpr size_t kWindow = 128;

  bool has_room() const;
  void update();

  const Duration least_;
  mutable std::mutex mutex_;             ///< guards the members up to slow_
  std::array<double, kWindow> paces_{};  ///< of the last requests, in ns per byte
  i64 finished_ = 0;
  i64 taken_ = 0;
  std::atomic<double> slow_ = 0;  ///< pace of a slow request; 0 while none may be sent again
};

}  // namespace shardtool::store::s3
