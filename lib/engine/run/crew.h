#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool::engine {

/// Threads that run the parts of one job after another.
class Crew {
 public:
  /// Uses the calling thread and `threads` - 1 more, or fewer if the system refuses them.
  explicit Crew(int threads);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  i64 size() const { return std::ssize(threads_) + 1; }
  /// Calls work(0) ... work(parts - 1) in parallel, and waits for all. Throws the first error.
  void run(i64 parts, const std::function<void(i64 part)>& work);

 private:
  void help(const std::stop_token& stop);
  /// Runs parts until none is left. The lock must be held.
  void take_parts(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  const std::function<void(i64)>* work_ = nullptr;
  i64 parts_ = 0;
  i64 next_ = 0;
  i64 done_ = 0;
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_;  ///< last member: they use those above
};

}  // namespace shardtool::engine
