#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>

#include "lib/exec/stream.h"

namespace shardtool::exec {

/// Adds up the work of several threads and reports it, at most ten times a second.
class ProgressMeter {
 public:
  /// Takes a `report` that may be empty and must outlive this.
  explicit ProgressMeter(const std::function<void(const Progress&)>& report, i64 bytes_total = 0)
      : report_(report) {
    progress_.bytes_total = bytes_total;
  }

  /// Raises the total bytes. Not thread-safe with add().
  void expect(i64 bytes) { progress_.bytes_total += bytes; }
  void add(i64 bytes, const std::string& item) {
    const std::lock_guard lock(mutex_);
    progress_.bytes_done += bytes;
    const auto now = std::chrono::steady_clock::now();
    if (!report_ || now - last_report_ < kInterval) return;
    last_report_ = now;
    progress_.item = item;
    report_(progress_);
  }
  /// Reports the end.
  void finish() const {
    if (report_) report_(progress_);
  }

 private:
  static constexpr auto kInterval = std::chrono::milliseconds(100);

  const std::function<void(const Progress&)>& report_;
  std::mutex mutex_;
  Progress progress_;
  std::chrono::steady_clock::time_point last_report_;
};

}  // namespace shardtool::exec
