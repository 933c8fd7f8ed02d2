#include "lib/store/local/sync_all.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "lib/base/threads.h"

namespace shardtool::store {
namespace {

constexpr i64 kMaxThreads = 8;

std::exception_ptr sync_failure(const File& file) noexcept {
  try {
    sync(file);
    return nullptr;
  } catch (...) {
    return std::current_exception();
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
    std::vector<std::jthread> helpers;
    start_workers(helpers, std::min(kMaxThreads, std::ssize(files)) - 1, work);
    work();
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace shardtool::store
