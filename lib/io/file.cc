#include "shardtool/io/file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "shardtool/base/error.h"
#include "shardtool/base/text.h"
#include "shardtool/io/syscalls.h"

namespace shardtool::io {
namespace {

constexpr i64 kMaxCallBytes = 1 << 30;  // Linux moves at most 2^31 - 4096 bytes a call

Error failure(ErrorCode code, const std::string& what, const std::string& path, int reason) {
  return Error(code, fmt::format("{}: {}", what, std::strerror(reason))).at({path, 0, 0, {}});
}

Error open_failure(const std::string& path, int reason) {
  const bool missing = reason == ENOENT || reason == ENOTDIR;
  Error error = failure(missing ? ErrorCode::kFileMissing : ErrorCode::kUnreadable,
                        "cannot open the file", path, reason);
  if (missing && path.find_first_of("*?[") != std::string::npos) {
    error.help("the shell did not expand the pattern: nothing matches it");
  }
  return error;
}

Error write_failure(const std::string& what, const std::string& path, int reason) {
  const bool no_space = reason == ENOSPC || reason == EDQUOT || reason == EFBIG;
  return failure(no_space ? ErrorCode::kNoSpace : ErrorCode::kWriteFailed, what, path, reason);
}

/// Repeats a call that a signal interrupted.
template <class Call>
auto retried(Call call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

/// Drops the first `bytes` of a list of parts.
std::span<iovec> without_front(std::span<iovec> parts, size_t bytes) {
  while (!parts.empty() && bytes >= parts.front().iov_len) {
    bytes -= parts.front().iov_len;
    parts = parts.subspan(1);
  }
  if (bytes > 0) {
    parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + bytes;
    parts.front().iov_len -= bytes;
  }
  return parts;
}

/// The bytes that a read or write moved, or the error that it ended with.
size_t moved(ssize_t result, const File& file, i64 offset) {
  if (result > 0) return static_cast<size_t>(result);
  if (result == 0) {
    throw Error(ErrorCode::kInputChanged,
                fmt::format("the file ends at byte {}, where more was expected", offset))
        .at({file.path(), 0, 0, {}});
  }
  throw failure(ErrorCode::kUnreadable, fmt::format("cannot read at byte {}", offset), file.path(), errno);
}

}  // namespace

File::File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) syscalls().close(fd_);
}

void File::close_checked() {
  // Not retried on EINTR: Linux has released the descriptor then.
  if (fd_ >= 0 && syscalls().close(std::exchange(fd_, -1)) != 0) {
    throw write_failure("cannot close the file", path_, errno);
  }
}

File open_read(const std::string& path) {
  const int fd = retried([&] {
    return syscalls().open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
  });
  if (fd < 0) throw open_failure(path, errno);
  File file(fd, path);
  struct stat status {};
  if (fstat(fd, &status) != 0) throw failure(ErrorCode::kUnreadable, "cannot stat the file", path, errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kUnreadable, S_ISDIR(status.st_mode) ? "expected a file, found a folder"
                                                                : "expected a regular file")
        .at({path, 0, 0, {}});
  }
  return file;
}

File open_read_direct(const std::string& path) {
  const int fd = retried(
      [&] { return syscalls().open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT | O_NONBLOCK, 0); });
  return fd < 0 ? File() : File(fd, path);
}

File create_new(const std::string& path) {
  const int fd = retried([&] {
    return syscalls().open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  });
  if (fd < 0) throw write_failure("cannot create the file", path, errno);
  return File(fd, path);
}

File open_write_direct(const std::string& path) {
  const int fd = retried([&] {
    return syscalls().open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_DIRECT, 0);
  });
  return fd < 0 ? File() : File(fd, path);
}

FileIdentity identity(const File& file) {
  struct stat status {};
  if (fstat(file.fd(), &status) != 0) {
    throw failure(ErrorCode::kUnreadable, "cannot stat the file", file.path(), errno);
  }
  const auto nanoseconds = [](const timespec& t) { return i64{t.tv_sec} * 1'000'000'000 + t.tv_nsec; };
  return {status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim), status.st_dev,
          status.st_ino};
}

bool is_resident(const File& file, i64 offset, i64 bytes) {
  for (const i64 at : {offset, offset + bytes / 2, offset + bytes - 1}) {
    std::byte sample{};
    iovec part{&sample, 1};
    if (::preadv2(file.fd(), &part, 1, at, RWF_NOWAIT) == 1) continue;
    // A file system without RWF_NOWAIT cannot tell; then the cache is the ordinary way.
    if (errno != EOPNOTSUPP && errno != ENOSYS) return false;
  }
  return true;
}

void read_exact(const File& file, std::span<std::byte> into, i64 offset) {
  while (!into.empty()) {
    const size_t size = std::min<size_t>(into.size(), kMaxCallBytes);
    const size_t got = moved(
        retried([&] { return syscalls().pread(file.fd(), into.data(), size, offset); }), file, offset);
    into = into.subspan(got);
    offset += static_cast<i64>(got);
  }
}

void read_scattered(const File& file, std::span<iovec> parts, i64 offset) {
  parts = without_front(parts, 0);
  while (!parts.empty()) {
    const int count = static_cast<int>(std::min<size_t>(parts.size(), IOV_MAX));
    const size_t got = moved(
        retried([&] { return syscalls().preadv(file.fd(), parts.data(), count, offset); }), file, offset);
    parts = without_front(parts, got);
    offset += static_cast<i64>(got);
  }
}

void write_exact(const File& file, std::span<const std::byte> from, i64 offset) {
  while (!from.empty()) {
    const size_t size = std::min<size_t>(from.size(), kMaxCallBytes);
    const ssize_t put =
        retried([&] { return syscalls().pwrite(file.fd(), from.data(), size, offset); });
    if (put <= 0) {
      throw write_failure(fmt::format("cannot write {} at byte {}", format_bytes(static_cast<i64>(size)), offset),
                          file.path(), put == 0 ? EIO : errno);
    }
    from = from.subspan(static_cast<size_t>(put));
    offset += put;
  }
}

void allocate(const File& file, i64 size) {
  if (size > 0) {
    const int result = retried([&] { return syscalls().fallocate(file.fd(), 0, 0, size); });
    if (result == 0) return;
    const bool unsupported = errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL;
    if (!unsupported) throw write_failure("cannot reserve " + format_bytes(size), file.path(), errno);
  }
  if (retried([&] { return syscalls().ftruncate(file.fd(), size); }) != 0) {
    throw write_failure("cannot set the size", file.path(), errno);
  }
}

void sync(const File& file) {
  if (syscalls().fsync(file.fd()) != 0) throw write_failure("cannot sync", file.path(), errno);
}

std::string read_text(const std::string& path, i64 limit) {
  const File file = open_read(path);
  const i64 size = identity(file).size;
  if (size > limit) {
    throw Error(ErrorCode::kLimit, fmt::format("the file has {}, at most {} are read", format_bytes(size),
                                               format_bytes(limit)))
        .at({path, 0, 0, {}});
  }
  std::string text(static_cast<size_t>(size), '\0');
  read_exact(file, std::as_writable_bytes(std::span(text)), 0);
  return text;
}

void write_new_file(const std::string& path, std::string_view text) {
  File file = create_new(path);
  write_exact(file, std::as_bytes(std::span(text)), 0);
  file.close_checked();
}

void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace shardtool::io
