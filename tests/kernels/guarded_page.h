#pragma once

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "lib/base/checked.h"

namespace shardtool::kernels {

/// Memory between two inaccessible pages.
class GuardedPage {
 public:
  GuardedPage()
      : page_(sysconf(_SC_PAGESIZE)),
        memory_(mmap(nullptr, static_cast<size_t>(3 * page_), PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(memory_ != MAP_FAILED);
    REQUIRE(mprotect(begin(), static_cast<size_t>(page_), PROT_READ | PROT_WRITE) == 0);
    std::memset(begin(), 0x5A, static_cast<size_t>(page_));
  }
  ~GuardedPage() { munmap(memory_, static_cast<size_t>(3 * page_)); }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;

  std::byte* begin() const { return static_cast<std::byte*>(memory_) + page_; }
  std::byte* end() const { return begin() + page_; }

 private:
  i64 page_;
  void* memory_;
};

}  // namespace shardtool::kernels
