#include "lib/engine/run/crew.h"

#include "lib/base/threads.h"

namespace shardtool::engine {

Crew::Crew(int threads) {
  start_workers(threads_, threads - 1, [this](const std::stop_token& stop) { help(stop); });
}

Crew::~Crew() {
  for (std::jthread& thread : threads_) thread.request_stop();
  changed_.notify_all();
}

void Crew::take_parts(std::unique_lock<std::mutex>& lock) {
  while (next_ < parts_) {
    const i64 part = next_++;
    const auto& work = *work_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      work(part);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    if (++done_ == parts_) changed_.notify_all();
  }
}

void Crew::help(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return next_ < parts_; })) take_parts(lock);
}

void Crew::run(i64 parts, const std::function<void(i64)>& work) {
  std::unique_lock lock(mutex_);
  work_ = &work;
  parts_ = parts;
  next_ = done_ = 0;
  failure_ = nullptr;
  changed_.notify_all();
  take_parts(lock);
  changed_.wait(lock, [this] { return done_ == parts_; });
  parts_ = next_ = 0;
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace shardtool::engine
