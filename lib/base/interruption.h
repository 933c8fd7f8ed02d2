#pragma once

#include <atomic>
#include <chrono>

namespace shardtool {

/// Lets a flag end the work of this thread, and of those that start_thread() starts meanwhile. A
/// signal handler may set the flag. Of nested scopes the inner one counts.
class Interruptible {
 public:
  using Duration = std::chrono::nanoseconds;

  /// `flag` outlives the work; null: nothing ends it. With `patience` the work goes on after the
  /// flag was set, such as to delete what a run leaves on a store, until it has waited for
  /// something for so long. Threads started meanwhile have no patience.
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

/// Patience of what deletes or lists what an interrupted run leaves on a store.
inline constexpr Interruptible::Duration kLastPatience = std::chrono::seconds(1);

/// Flag that ends the work of this thread; null if none does.
const std::atomic<bool>* interruption();

/// Throws kInterrupted once the flag is set. In a scope with patience it does so when `waited`, the
/// time since something came last, is as long, and from then on.
void check_interrupted(Interruptible::Duration waited = Interruptible::Duration::zero());

}  // namespace shardtool
