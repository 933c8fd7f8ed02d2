#pragma once

#include <cstddef>

#include "lib/io/syscalls.h"

namespace shardtool::testing {

/// The kinds of calls of io::Syscalls.
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
};
inline constexpr int kCallKinds = 11;

/// While it lives, I/O goes through a table that counts the calls and spoils those that it is told
/// to; a spoiled call has no effect, except that a descriptor is closed all the same. fsync is only
/// counted: no test can see its effect, and thousands of them take minutes on a busy disk. One at a
/// time.
class FaultySyscalls {
 public:
  FaultySyscalls();

  /// The n-th call (from 1) of this kind from now on fails with this errno.
  void fail(Call call, int n, int error_number);
  /// Every call of this kind fails with this errno from now on.
  void fail_all(Call call, int error_number);
  /// Each kPreadv or kPwrite moves at most `bytes`.
  void shorten(Call call, size_t bytes);
  /// No call is spoiled any more, and counting starts again.
  void heal();

  /// The calls of this kind since the beginning (or heal), spoiled ones too.
  int count(Call call) const;

 private:
  io::ScopedSyscalls scope_;
};

}  // namespace shardtool::testing
