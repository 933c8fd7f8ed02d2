#include "tests/support/dying_syscalls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <map>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lib/store/local/syscalls.h"

namespace shardtool::testing {
namespace {

using File = std::pair<dev_t, ino_t>;
constexpr size_t kPage = 4096;

/// Previous content of a page-sized part of a file.
struct Overwritten {
  File file;
  off_t offset = 0;
  std::vector<std::byte> before;
};

/// State of a child process, never of the test itself.
struct Doom {
  std::mutex mutex;
  int calls_left = 0;
  Death death = Death::kKilled;
  std::mt19937 random;
  std::vector<Overwritten> unsynced;
  std::map<File, int> descriptors;  ///< separate descriptors: the writer's may be closed, or for
                                    ///< direct I/O
};
Doom* doom = nullptr;

File file_of(int fd) {
  struct stat status {};
  ::fstat(fd, &status);
  return {status.st_dev, status.st_ino};
}

[[noreturn]] void die() {
  if (doom->death == Death::kPowerCut) {
    // Newest first, so that the content before the first of several writes is restored last.
    for (auto lost = doom->unsynced.rbegin(); lost != doom->unsynced.rend(); ++lost) {
      if (doom->random() % 2 == 0) continue;
      if (::pwrite(doom->descriptors[lost->file], lost->before.data(), lost->before.size(),
                   lost->offset) < 0) {
        ::_exit(2);
      }
    }
  }
  ::kill(::getpid(), SIGKILL);
  while (true) ::pause();
}

void count_call() {
  if (--doom->calls_left == 0) die();
}

int own_descriptor(int fd) {
  const auto [entry, is_new] = doom->descriptors.try_emplace(file_of(fd), -1);
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (is_new) entry->second = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  return entry->second;
}

void remember(int fd, off_t offset, size_t size) {
  const int own = own_descriptor(fd);
  for (size_t done = 0; done < size;) {
    const auto at = offset + static_cast<off_t>(done);
    const size_t part = std::min(size - done, kPage - static_cast<size_t>(at) % kPage);
    Overwritten page{file_of(fd), at, std::vector<std::byte>(part)};
    const ssize_t got = ::pread(own, page.before.data(), part, at);
    page.before.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    doom->unsynced.push_back(std::move(page));
    done += part;
  }
}

template <auto kEntry>
struct Counted;

template <class Result, class... Args, Result (*store::Syscalls::*kEntry)(Args...)>
struct Counted<kEntry> {
  static Result call(Args... args) {
    const std::lock_guard lock(doom->mutex);
    count_call();
    return (store::real_syscalls().*kEntry)(args...);
  }
};

ssize_t noted_pwrite(int fd, const void* from, size_t size, off_t offset) {
  const std::lock_guard lock(doom->mutex);
  count_call();
  if (doom->death == Death::kPowerCut) remember(fd, offset, size);
  return store::real_syscalls().pwrite(fd, from, size, offset);
}

int noted_fsync(int fd) {
  const std::lock_guard lock(doom->mutex);
  count_call();
  const File file = file_of(fd);
  std::erase_if(doom->unsynced, [&](const Overwritten& page) { return page.file == file; });
  return 0;
}

store::Syscalls doomed_table() {
  using store::Syscalls;
  return {
      .openat = Counted<&Syscalls::openat>::call,
      .close = store::real_syscalls().close,
      .statx = store::real_syscalls().statx,
      .preadv = Counted<&Syscalls::preadv>::call,
      .pwrite = noted_pwrite,
      .fallocate = Counted<&Syscalls::fallocate>::call,
      .ftruncate = Counted<&Syscalls::ftruncate>::call,
      .clone_range = store::real_syscalls().clone_range,
      .fsync = noted_fsync,
      .mkdir = Counted<&Syscalls::mkdir>::call,
      .rename = Counted<&Syscalls::rename>::call,
      .rename_exchange = Counted<&Syscalls::rename_exchange>::call,
      .unlinkat = Counted<&Syscalls::unlinkat>::call,
      .statvfs = store::real_syscalls().statvfs,
      .statfs = store::real_syscalls().statfs,
      .faccessat = store::real_syscalls().faccessat,
  };
}

[[noreturn]] void live_until(int n, Death death, std::uint32_t seed,
                             const std::function<void()>& work) {
  Doom own;
  own.calls_left = n;
  own.death = death;
  own.random.seed(seed);
  doom = &own;
  const store::ScopedSyscalls scope(doomed_table());
  try {
    work();
  } catch (...) {
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

bool dies_at(int n, Death death, std::uint32_t seed, const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) live_until(n, death, seed, work);
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid failed");
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return true;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return false;
  throw std::runtime_error("the work failed in the child");
}

}  // namespace shardtool::testing
