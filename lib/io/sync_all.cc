#include "shardtool/io/sync_all.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace shardtool::io {
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

}  // namespace

void sync_all(const std::deque<File>& files) {
  std::vector<std::exception_ptr> failures(files.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < files.size(); i = next++) failures[i] = sync_failure(files[i]);
  };
  {
    std::vector<std::jthread> helpers;
    try {
      while (helpers.size() + 1 < std::min(kMaxThreads, files.size())) helpers.emplace_back(work);
    } catch (const std::system_error&) {
      // No more threads to be had: those that there are, and this one, do all the work.
    }
    work();
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace shardtool::io
