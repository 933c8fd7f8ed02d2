#pragma once

#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>

namespace shardtool::store {

/// Table of every system call that touches the data or the names of files, or queries file
/// properties. Tests replace it to make the n-th call of a kind fail, fall short or be interrupted,
/// and to emulate devices. Each entry has the signature and the errno convention of the call that
/// it is named after.
struct Syscalls {
  int (*openat)(int folder, const char* path, int flags, mode_t mode);
  int (*close)(int fd);
  int (*statx)(int folder, const char* path, int flags, unsigned mask, struct statx* found);
  ssize_t (*preadv)(int fd, const iovec* parts, int count, off_t offset);
  ssize_t (*pwrite)(int fd, const void* from, size_t size, off_t offset);
  int (*fallocate)(int fd, int mode, off_t offset, off_t length);
  int (*ftruncate)(int fd, off_t length);
  int (*clone_range)(int to, const file_clone_range* range);  ///< ioctl FICLONERANGE
  int (*fsync)(int fd);
  int (*mkdir)(const char* path, mode_t mode);
  int (*rename)(const char* from, const char* to);
  int (*rename_exchange)(const char* a, const char* b);  ///< renameat2 with RENAME_EXCHANGE
  int (*unlinkat)(int folder, const char* name, int flags);
  int (*statvfs)(const char* path, struct statvfs* found);
  int (*statfs)(const char* path, struct statfs* found);
  int (*faccessat)(int folder, const char* path, int mode, int flags);
};

/// Table in use: the real calls unless a test replaced it.
const Syscalls& syscalls();

/// Replaces the table until destroyed. For tests only; not thread-safe against running I/O.
class ScopedSyscalls {
 public:
  explicit ScopedSyscalls(const Syscalls& replacement);
  ~ScopedSyscalls();
  ScopedSyscalls(const ScopedSyscalls&) = delete;
  ScopedSyscalls& operator=(const ScopedSyscalls&) = delete;

 private:
  Syscalls saved_;
};
/// Real calls, to build replacements from.
const Syscalls& real_syscalls();

}  // namespace shardtool::store
