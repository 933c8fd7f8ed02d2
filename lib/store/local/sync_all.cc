#include "lib/store/local/sync_all.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace shardtool::store {
namespace {

constexpr size_t kMaxThreads = 8;

std::exception_ptr sync_failure(const File& file) noexcept {
  try {
    sync(file);
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

/// Starts one more thread; returns false if the system refuses.
template <class Work>
bool start(std::vector<std::jthread>& helpers, const Work& work) {
  try {
    helpers.emplace_back(work);
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace

void sync_all(const std::deque<File>& files) {
  std::vector<std::exception_ptr> failures(files.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < files.size(); i = next++) failures[i] = sync_failure(files[i]);
  };
  {
    const size_t threads = std::min(kMaxThreads, files.size());
    std::vector<std::jthread> helpers;  // in addition to this thread
    while (helpers.size() + 1 < threads && start(helpers, work)) {
    }
    work();
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace shardtool::store
