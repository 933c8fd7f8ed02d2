#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::engine {

/// Threads that do the parts of one piece of work after the other.
class Crew {
 public:
  /// This thread and `threads` - 1 more.
  explicit Crew(int threads);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  i64 size() const { return std::ssize(threads_) + 1; }
  /// Calls work(0) ... work(parts - 1), several at once, and waits for all. Throws the first
  /// failure.
  void run(i64 parts, const std::function<void(i64 part)>& work);

 private:
  void help(const std::stop_token& stop);
  /// Takes parts until none is left. Requires the lock.
  void take_parts(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  const std::function<void(i64)>* work_ = nullptr;
  i64 parts_ = 0;
  i64 next_ = 0;
  i64 done_ = 0;
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_;  ///< last: they use what stands above
};

}  // namespace shardtool::engine
