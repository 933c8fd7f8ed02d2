// A library for LD_PRELOAD that makes system calls of a program fail or wait.
//
//   CHAOS_FAIL=pwrite:37:28    the 37th pwrite of the process fails with errno 28 and no effect
//   CHAOS_DELAY=200            every pwrite and preadv first waits for up to 200 microseconds
//   CHAOS_SEED=1               seed of the waits
//
// Calls: pwrite, preadv, fsync, fallocate, ftruncate, rename, mkdir. Several failures are separated
// by commas.

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

/// Calls of one kind, with the planned failure.
struct Kind {
  const char* name;
  std::atomic<int> calls{0};
  int failing = 0;  ///< number of the call, from 1; 0: no failure
  int error = 0;

  explicit Kind(const char* call) : name(call) {
    const char* at = std::getenv("CHAOS_FAIL");
    const size_t length = std::strlen(name);
    for (; at != nullptr; at = std::strchr(at, ',')) {
      if (*at == ',') ++at;
      if (std::strncmp(at, name, length) != 0 || at[length] != ':') continue;
      char* end = nullptr;
      failing = static_cast<int>(std::strtol(at + length + 1, &end, 10));
      if (*end == ':') error = static_cast<int>(std::strtol(end + 1, nullptr, 10));
    }
  }

  bool fails() {
    if (++calls != failing) return false;
    errno = error;
    return true;
  }
};

long number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtol(text, nullptr, 10);
}

void wait_a_little() {
  static const long longest = number_in("CHAOS_DELAY");
  static std::atomic<std::uint64_t> state{static_cast<std::uint64_t>(number_in("CHAOS_SEED")) + 1};
  if (longest == 0) return;
  const std::uint64_t next = state.fetch_add(0x9e3779b97f4a7c15U);
  const std::uint64_t mixed = (next ^ (next >> 29)) * 0xbf58476d1ce4e5b9U;
  ::usleep(static_cast<useconds_t>((mixed >> 33) % static_cast<std::uint64_t>(longest)));
}

/// Looks up the system's function `name`.
template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t pwrite(int fd, const void* from, size_t size, off_t offset) {
  static Kind kind("pwrite");
  static const auto call = real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  wait_a_little();
  return kind.fails() ? -1 : call(fd, from, size, offset);
}

ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) {
  static Kind kind("preadv");
  static const auto call = real<ssize_t (*)(int, const iovec*, int, off_t)>("preadv");
  wait_a_little();
  return kind.fails() ? -1 : call(fd, parts, count, offset);
}

int fsync(int fd) {
  static Kind kind("fsync");
  static const auto call = real<int (*)(int)>("fsync");
  return kind.fails() ? -1 : call(fd);
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
  static Kind kind("fallocate");
  static const auto call = real<int (*)(int, int, off_t, off_t)>("fallocate");
  return kind.fails() ? -1 : call(fd, mode, offset, length);
}

int ftruncate(int fd, off_t length) {
  static Kind kind("ftruncate");
  static const auto call = real<int (*)(int, off_t)>("ftruncate");
  return kind.fails() ? -1 : call(fd, length);
}

int rename(const char* from, const char* to) {
  static Kind kind("rename");
  static const auto call = real<int (*)(const char*, const char*)>("rename");
  return kind.fails() ? -1 : call(from, to);
}

int mkdir(const char* path, mode_t mode) {
  static Kind kind("mkdir");
  static const auto call = real<int (*)(const char*, mode_t)>("mkdir");
  return kind.fails() ? -1 : call(path, mode);
}

}  // extern "C"
