#include "tests/support/interleaved_syscalls.h"

#include <atomic>

#include "lib/store/local/syscalls.h"

namespace shardtool::testing {
namespace {

/// Calls until the other work runs; below 1 afterwards.
std::atomic<int> calls_before_other = 0;
const std::function<void()>* other_work = nullptr;

void count_interleaved() {
  if (--calls_before_other == 0) (*other_work)();
}

template <auto kEntry>
struct Interleaved;

template <class Result, class... Args, Result (*store::Syscalls::*kEntry)(Args...)>
struct Interleaved<kEntry> {
  static Result call(Args... args) {
    count_interleaved();
    return (store::real_syscalls().*kEntry)(args...);
  }
};

int unsynced(int) {
  count_interleaved();
  return 0;
}

store::Syscalls interleaved_table() {
  using store::Syscalls;
  Syscalls table = store::real_syscalls();
  table.openat = Interleaved<&Syscalls::openat>::call;
  table.preadv = Interleaved<&Syscalls::preadv>::call;
  table.pwrite = Interleaved<&Syscalls::pwrite>::call;
  table.fallocate = Interleaved<&Syscalls::fallocate>::call;
  table.ftruncate = Interleaved<&Syscalls::ftruncate>::call;
  table.mkdir = Interleaved<&Syscalls::mkdir>::call;
  table.rename = Interleaved<&Syscalls::rename>::call;
  table.rename_exchange = Interleaved<&Syscalls::rename_exchange>::call;
  table.unlinkat = Interleaved<&Syscalls::unlinkat>::call;
  table.fsync = unsynced;
  return table;
}

}  // namespace

bool interleave(int n, const std::function<void()>& first, const std::function<void()>& second) {
  calls_before_other = n;
  other_work = &second;
  const store::ScopedSyscalls scope(interleaved_table());
  first();
  return calls_before_other <= 0;
}

}  // namespace shardtool::testing
