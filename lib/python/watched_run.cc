#include "lib/python/watched_run.h"

#include <nanobind/stl/string.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/base/threads.h"

namespace nb = nanobind;

namespace shardtool::python {
namespace {

constexpr std::chrono::milliseconds kSignalInterval{50};

/// State that the two threads share.
class WatchedRun {
 public:
  WatchedRun(exec::Resources& resources, bool reports) {
    if (!reports) return;
    resources.on_progress = [this](const exec::Progress& progress) {
      const std::lock_guard lock(mutex_);
      latest_ = progress;
      changed_.notify_one();
    };
  }

  /// Body of the thread.
  void run(const std::function<void()>& work) {
    const Interruptible scope(&cancel_);
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    failure_ = failure;
    is_done_ = true;
    changed_.notify_one();
  }

  /// Waits for progress, the end, or the time for signals. Returns false at the end.
  bool wait(std::optional<exec::Progress>& progress) {
    const nb::gil_scoped_release release;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kSignalInterval, [this] { return is_done_ || latest_.has_value(); });
    progress = std::exchange(latest_, std::nullopt);
    return !is_done_;
  }

  void cancel() { cancel_ = true; }
  std::exception_ptr failure() const { return failure_; }

 private:
  std::atomic<bool> cancel_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<exec::Progress> latest_;
  std::exception_ptr failure_;
  bool is_done_ = false;
};

/// Calls Python; returns the exception that it raised.
std::exception_ptr call_back(nb::handle callback, const std::optional<exec::Progress>& progress) {
  try {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (progress) callback(progress->bytes_done, progress->bytes_total, progress->item);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace

void run_watched(exec::Resources& resources, nb::handle progress,
                 const std::function<void()>& work) {
  if (!progress.is_none() && PyCallable_Check(progress.ptr()) == 0)
    throw nb::type_error("progress must be callable");
  WatchedRun run(resources, !progress.is_none());
  std::vector<std::jthread> worker;
  if (!start_thread(worker, [&] { run.run(work); })) {
    throw Error(ErrorCode::kLimit, "the system refused a thread")
        .help("raise the limits of threads and of memory (`ulimit -u`, `ulimit -v`)");
  }
  std::exception_ptr raised;
  std::optional<exec::Progress> latest;
  for (bool goes_on = true; goes_on;) {
    goes_on = run.wait(latest);
    if (raised) continue;
    raised = call_back(progress, latest);
    if (raised) run.cancel();
  }
  worker.front().join();
  if (raised) std::rethrow_exception(raised);
  if (run.failure()) std::rethrow_exception(run.failure());
}

}  // namespace shardtool::python
