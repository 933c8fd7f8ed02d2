#include "lib/store/s3/hedging.h"

#include <algorithm>

namespace shardtool::store::s3 {
namespace {

/// An answer takes as long as if it had so many bytes more: the time until its first byte.
constexpr i64 kLatencyBytes = 1 << 20;
constexpr i64 kPercentile = 95;
constexpr double kSlower = 2;
constexpr i64 kRequestsForOne = 20;  ///< whose bytes came, for one that is sent again

double weight_of(i64 bytes) {
  return static_cast<double>(bytes + kLatencyBytes);
}

}  // namespace

bool Hedging::has_room() const {
  return (taken_ + 1) * kRequestsForOne <= finished_;
}

/// Sets slow_ from the other members.
void Hedging::update() {
  if (!has_room()) {
    slow_ = 0;
    return;
  }
  std::array<double, kWindow> sorted = paces_;
  const i64 count = std::min<i64>(finished_, kWindow);
  const auto at = sorted.begin() + ceil_div(count * kPercentile, i64{100}) - 1;
  std::nth_element(sorted.begin(), at, sorted.begin() + count);
  slow_ = kSlower * *at;
}

void Hedging::finished(i64 bytes, Duration took) {
  const std::lock_guard lock(mutex_);
  paces_[static_cast<size_t>(finished_++) % kWindow] =
      std::max(static_cast<double>(took.count()), 1.0) / weight_of(bytes);
  update();
}

std::optional<Hedging::Duration> Hedging::slow_after(i64 bytes) const {
  const double pace = slow_;
  if (pace == 0) return std::nullopt;
  return std::max(least_, Duration(static_cast<i64>(pace * weight_of(bytes))));
}

bool Hedging::take() {
  const std::lock_guard lock(mutex_);
  if (!has_room()) return false;
  ++taken_;
  update();
  return true;
}

i64 Hedging::taken() const {
  const std::lock_guard lock(mutex_);
  return taken_;
}

}  // namespace shardtool::store::s3
