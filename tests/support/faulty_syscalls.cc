#include "tests/support/faulty_syscalls.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <vector>

namespace shardtool::testing {
namespace {

/// Fault of the calls of one kind. Global, because the table holds plain functions.
struct Fault {
  std::atomic<int> calls = 0;
  int first = 0;  ///< 0: all succeed
  int last = 0;   ///< 0: no limit
  int error_number = 0;
  size_t longest = 0;  ///< 0: unlimited
};
std::array<Fault, kCallKinds> faults;

Fault& fault_of(Call call) {
  return faults[static_cast<size_t>(call)];
}

/// Counts a call. Returns true with errno set if it must fail.
bool fails(Call call) {
  Fault& fault = fault_of(call);
  const int n = ++fault.calls;
  if (fault.first == 0 || n < fault.first || (fault.last != 0 && n > fault.last)) return false;
  errno = fault.error_number;
  return true;
}

template <Call kCall, auto kEntry>
struct Spoiled;

template <Call kCall, class Result, class... Args, Result (*store::Syscalls::*kEntry)(Args...)>
struct Spoiled<kCall, kEntry> {
  static Result call(Args... args) {
    return fails(kCall) ? Result{-1} : (store::real_syscalls().*kEntry)(args...);
  }
};

int fsync_spoiled(int) {
  return fails(Call::kFsync) ? -1 : 0;
}

int close_spoiled(int fd) {
  const int result = store::real_syscalls().close(fd);
  return fails(Call::kClose) ? -1 : result;
}

ssize_t preadv_spoiled(int fd, const iovec* parts, int count, off_t offset) {
  if (fails(Call::kPreadv)) return -1;
  size_t left = fault_of(Call::kPreadv).longest;
  if (left == 0) return store::real_syscalls().preadv(fd, parts, count, offset);
  std::vector<iovec> shortened(parts, parts + count);
  for (iovec& part : shortened) {
    part.iov_len = std::min(part.iov_len, left);
    left -= part.iov_len;
  }
  return store::real_syscalls().preadv(fd, shortened.data(), count, offset);
}

ssize_t pwrite_spoiled(int fd, const void* from, size_t size, off_t offset) {
  if (fails(Call::kPwrite)) return -1;
  const size_t longest = fault_of(Call::kPwrite).longest;
  const size_t shortened = longest == 0 ? size : std::min(size, longest);
  return store::real_syscalls().pwrite(fd, from, shortened, offset);
}

store::Syscalls spoiled_table() {
  using store::Syscalls;
  return {
      .openat = Spoiled<Call::kOpenat, &Syscalls::openat>::call,
      .close = close_spoiled,
      .statx = store::real_syscalls().statx,
      .preadv = preadv_spoiled,
      .pwrite = pwrite_spoiled,
      .fallocate = Spoiled<Call::kFallocate, &Syscalls::fallocate>::call,
      .ftruncate = Spoiled<Call::kFtruncate, &Syscalls::ftruncate>::call,
      .clone_range = store::real_syscalls().clone_range,
      .fsync = fsync_spoiled,
      .mkdir = Spoiled<Call::kMkdir, &Syscalls::mkdir>::call,
      .rename = Spoiled<Call::kRename, &Syscalls::rename>::call,
      .rename_exchange = Spoiled<Call::kRenameExchange, &Syscalls::rename_exchange>::call,
      .unlinkat = Spoiled<Call::kUnlinkat, &Syscalls::unlinkat>::call,
      .statvfs = store::real_syscalls().statvfs,
      .statfs = store::real_syscalls().statfs,
      .faccessat = Spoiled<Call::kFaccessat, &Syscalls::faccessat>::call,
  };
}

}  // namespace

FaultySyscalls::FaultySyscalls() : scope_(spoiled_table()) {
  heal();
}

void FaultySyscalls::fail(Call call, int n, int error_number) {
  Fault& fault = fault_of(call);
  fault.first = fault.last = fault.calls + n;
  fault.error_number = error_number;
}

void FaultySyscalls::fail_all(Call call, int error_number) {
  Fault& fault = fault_of(call);
  fault.first = fault.calls + 1;
  fault.last = 0;
  fault.error_number = error_number;
}

void FaultySyscalls::shorten(Call call, size_t bytes) {
  fault_of(call).longest = bytes;
}

void FaultySyscalls::heal() {
  for (Fault& fault : faults) {
    fault.calls = 0;
    fault.first = fault.last = fault.error_number = 0;
    fault.longest = 0;
  }
}

int FaultySyscalls::count(Call call) const {
  return fault_of(call).calls;
}

}  // namespace shardtool::testing
