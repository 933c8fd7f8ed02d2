#pragma once

#include <atomic>
#include <chrono>

namespace shardtool {

/// Lets a flag end the work of this thread, and of those that start_thread() starts meanwhile. A
/// signal handler may set the flag. Of nested scopes the inner one counts.
class Interruptible {
 public:
  using Duration = std::chrono::nanoseconds;

  /// `flag` outlives the work; null: nothing ends it. With `patience`, the work may continue after
  /// the flag was set, such as deletions of what a run leaves on a store: it ends once one of its
  /// waits has lasted that long. Threads started meanwhile have no patience.
  explicit Interruptible(const std::atomic<bool>* flag, Duration patience = Duration::zero());
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  friend const std::atomic<bool>* interruption();
  friend void check_interrupted(Duration waited);

  const std::atomic<bool>* flag_;
  const Duration patience_;
  bool is_over_ = false;
  Interruptible* const outer_;
};

/// Longest time that a wait goes on before it checks for an interruption.
inline constexpr std::chrono::milliseconds kInterruptionGlance{100};

/// Patience of what deletes or lists what an interrupted run leaves on a store, and of processes
/// that meet.
inline constexpr Interruptible::Duration kLastPatience = std::chrono::seconds(1);

/// Flag that ends the work of this thread; null if none does.
const std::atomic<bool>* interruption();

/// Throws kInterrupted if the flag is set. In a scope with patience, it does so only once `waited`,
/// the time since the last progress, has reached the patience, and in every call after that.
void check_interrupted(Interruptible::Duration waited = Interruptible::Duration::zero());

}  // namespace shardtool
