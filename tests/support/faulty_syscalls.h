#pragma once

#include <cstddef>

#include "lib/store/local/syscalls.h"

namespace shardtool::testing {

/// Kinds of calls of store::Syscalls.
enum class Call {
  kOpenat,
  kClose,
  kPreadv,
  kPwrite,
  kFallocate,
  kFtruncate,
  kFsync,
  kMkdir,
  kRename,
  kRenameExchange,
  kUnlinkat,
  kFaccessat,
};
inline constexpr int kCallKinds = 12;

/// During its lifetime, I/O uses a table that counts the calls and injects faults. A failed call
/// has no effect, except that a descriptor is closed. fsync is only counted: tests cannot see its
/// effect, and thousands of them take minutes on a busy disk. Only one instance at a time.
class FaultySyscalls {
 public:
  FaultySyscalls();

  /// Makes the n-th call (from 1) of this kind from now on fail with this errno.
  void fail(Call call, int n, int error_number);
  /// Makes every call of this kind fail with this errno from now on.
  void fail_all(Call call, int error_number);
  /// Limits each kPreadv or kPwrite to `bytes`.
  void shorten(Call call, size_t bytes);
  /// Removes all faults and resets the counts.
  void heal();

  /// Returns the number of calls of this kind since the start (or heal), failed ones included.
  int count(Call call) const;

 private:
  store::ScopedSyscalls scope_;
};

}  // namespace shardtool::testing
