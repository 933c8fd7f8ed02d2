#include "shardtool/io/syscalls.h"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shardtool::io {
namespace {

constexpr Syscalls kReal{
    .open = [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); },
    .close = [](int fd) { return ::close(fd); },
    .pread = [](int fd, void* into, size_t size, off_t offset) {
      return ::pread(fd, into, size, offset);
    },
    .preadv = [](int fd, const iovec* parts, int count, off_t offset) {
      return ::preadv(fd, parts, count, offset);
    },
    .pwrite = [](int fd, const void* from, size_t size, off_t offset) {
      return ::pwrite(fd, from, size, offset);
    },
    .fallocate = [](int fd, int mode, off_t offset, off_t length) {
      return ::fallocate(fd, mode, offset, length);
    },
    .ftruncate = [](int fd, off_t length) { return ::ftruncate(fd, length); },
    .fsync = [](int fd) { return ::fsync(fd); },
    .mkdir = [](const char* path, mode_t mode) { return ::mkdir(path, mode); },
    .rename_no_replace = [](const char* from, const char* to) {
      return ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
    },
    .rename_exchange = [](const char* a, const char* b) {
      return ::renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
    },
    .unlink = [](const char* path) { return ::unlink(path); },
    .rmdir = [](const char* path) { return ::rmdir(path); },
};

Syscalls table = kReal;

}  // namespace

const Syscalls& syscalls() { return table; }

const Syscalls& real_syscalls() { return kReal; }

ScopedSyscalls::ScopedSyscalls(const Syscalls& replacement) : saved_(table) { table = replacement; }

ScopedSyscalls::~ScopedSyscalls() { table = saved_; }

}  // namespace shardtool::io
