#include "tests/comm/refused_threads.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <limits>

namespace {

constexpr int kAll = std::numeric_limits<int>::max();

std::atomic<int> allowed = kAll;

}  // namespace

/// Stands before the C library's function of this name, also for the C++ library.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (allowed != kAll && allowed-- <= 0) return EAGAIN;
  return create(thread, attributes, start, argument);
}

namespace shardtool::testing {

RefusedThreads::RefusedThreads(int allowed_threads) {
  allowed = allowed_threads;
}

RefusedThreads::~RefusedThreads() {
  allowed = kAll;
}

}  // namespace shardtool::testing
