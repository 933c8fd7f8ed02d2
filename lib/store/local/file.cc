#include "lib/store/local/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "lib/base/text.h"
#include "lib/store/local/failure.h"
#include "lib/store/local/syscalls.h"

namespace shardtool::store {
namespace {

constexpr mode_t kFileMode = 0666;  // less the umask
constexpr int kCreateNew = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW;

/// Opens relative to the working folder; returns a negative value with errno set on failure.
int open_fd(const std::string& path, int flags) {
  int fd = -1;
  do {
    fd = syscalls().openat(AT_FDCWD, path.c_str(), flags | O_CLOEXEC, kFileMode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

/// Required alignment of addresses (memory), and of offsets and sizes (offset), for O_DIRECT.
struct DirectAlignment {
  i64 memory = kDirectAlignment;
  i64 offset = kDirectAlignment;
};

/// Alignment that the system reports, pages by default. Zeros if the file has no direct I/O.
DirectAlignment direct_alignment(const File& file) {
#if defined(STATX_DIOALIGN)
  struct statx found {};
  if (syscalls().statx(file.fd(), "", AT_EMPTY_PATH, STATX_DIOALIGN, &found) == 0 &&
      (found.stx_mask & STATX_DIOALIGN) != 0) {
    return {found.stx_dio_mem_align, found.stx_dio_offset_align};
  }
#endif
  return {};
}

/// True if page-aligned transfers of whole pages satisfy the alignment.
bool is_aligned_enough(const File& file) {
  const auto [memory, offset] = direct_alignment(file);
  const auto divides_page = [](i64 size) { return size > 0 && kDirectAlignment % size == 0; };
  return divides_page(memory) && divides_page(offset);
}

File open_or_closed(const std::string& path, int flags) {
  const int fd = open_fd(path, flags);
  return fd < 0 ? File() : File(fd, path);
}

File open_direct(const std::string& path, int flags) {
  File file = open_or_closed(path, flags | O_DIRECT);
  return file.is_open() && is_aligned_enough(file) ? std::move(file) : File();
}

struct stat status(const File& file) {
  struct stat status {};
  if (::fstat(file.fd(), &status) != 0) throw read_failure("look at the file", file.path(), errno);
  return status;
}

std::string_view kind_name(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "no regular file";
}

void skip_bytes(std::span<iovec>& parts, size_t bytes) {
  while (!parts.empty() && bytes >= parts.front().iov_len) {
    bytes -= parts.front().iov_len;
    parts = parts.subspan(1);
  }
  if (parts.empty()) return;
  parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + bytes;
  parts.front().iov_len -= bytes;
}

i64 to_ns(const timespec& time) {
  return i64{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FileIdentity identity_of(const struct stat& found) {
  return {.size = found.st_size,
          .mtime_ns = to_ns(found.st_mtim),
          .ctime_ns = to_ns(found.st_ctim),
          .device = found.st_dev,
          .inode = found.st_ino,
          .mode = found.st_mode,
          .owner = found.st_uid,
          .group = found.st_gid,
          .links = found.st_nlink};
}

/// Owner that the file system gives to new files in the folder of `path`: a network file system may
/// map users. -1 if no file can be created there.
uid_t owner_of_new_files(const std::string& path) {
  const std::string probe = fmt::format("{}.{}.owner", path, ::getpid());
  const File file = open_or_closed(probe, kCreateNew);
  if (!file.is_open()) return static_cast<uid_t>(-1);
  syscalls().unlinkat(AT_FDCWD, probe.c_str(), 0);
  return status(file).st_uid;
}

bool is_own(const struct stat& found, const std::string& path) {
  return found.st_uid == ::geteuid() || found.st_uid == owner_of_new_files(path);
}

std::string owner_text(const struct stat& found) {
  return fmt::format("it belongs to user {}, and this is user {}", found.st_uid, ::geteuid());
}

Error not_own(const std::string& path, const std::string& found) {
  return Error(ErrorCode::kOtherRun,
               fmt::format("the interrupted run was not left by this user: {}", found))
      .at({path, 0, 0, {}})
      .help("delete it if it is yours, or write to another output");
}

/// Checks the file opened with O_NOFOLLOW at `path`; it is closed if that is a symbolic link.
void check_own_file(const File& file, const std::string& path) {
  if (!file.is_open()) throw not_own(path, "expected a file, found a symbolic link");
  const struct stat found = status(file);
  if (!S_ISREG(found.st_mode)) {
    throw not_own(path, fmt::format("expected a regular file, found {}", kind_name(found.st_mode)));
  }
  if (found.st_nlink > 1) throw not_own(path, "the file has another name, too");
  if (!is_own(found, path)) throw not_own(path, owner_text(found));
}

}  // namespace

File::File(File&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

File::~File() {
  if (is_open()) syscalls().close(fd_);
}

void File::close_checked() {
  const int fd = std::exchange(fd_, -1);
  // Linux has closed the descriptor even when it answers EINTR.
  if (syscalls().close(fd) != 0 && errno != EINTR) {
    throw write_failure("close the file", path_, errno);
  }
}

File open_read(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  File file = open_or_closed(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file.is_open()) {
    Error error = read_failure("open the file", path, errno);
    if (error.code() == ErrorCode::kFileMissing && path.find_first_of("*?[") != path.npos) {
      error.help("the path looks like a pattern that matched nothing");
    }
    throw error;
  }
  const mode_t mode = status(file).st_mode;
  if (S_ISREG(mode)) return file;
  throw Error(ErrorCode::kUnreadable,
              fmt::format("expected a regular file, found {}", kind_name(mode)))
      .at({path, 0, 0, {}});
}

File open_read_direct(const std::string& path) {
  return open_direct(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

i64 memory_alignment(const File& direct) {
  return direct_alignment(direct).memory;
}

File create_new(const std::string& path) {
  File file = open_or_closed(path, kCreateNew);
  if (file.is_open()) return file;
  if (errno == EEXIST) {
    throw Error(ErrorCode::kOutputExists, "the file exists")
        .at({path, 0, 0, {}})
        .help("choose another name, or delete it first");
  }
  throw write_failure("create the file", path, errno);
}

File create_anew(const std::string& path) {
  syscalls().unlinkat(AT_FDCWD, path.c_str(), 0);
  return create_new(path);
}

File open_own_or_create(const std::string& path) {
  File file = open_or_closed(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK);
  if (!file.is_open() && errno != ELOOP) throw write_failure("open the file", path, errno);
  check_own_file(file, path);
  return file;
}

File open_own(const std::string& path) {
  File file = open_or_closed(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file.is_open() && errno != ELOOP) throw read_failure("open the file", path, errno);
  check_own_file(file, path);
  return file;
}

void check_own_folder(const std::string& path) {
  const File folder = open_or_closed(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder.is_open()) throw not_own(path, "expected a folder, found something else");
  const struct stat found = status(folder);
  if (!is_own(found, path)) throw not_own(path, owner_text(found));
}

File open_write_direct(const std::string& path) {
  return open_direct(path, O_WRONLY | O_NOFOLLOW);
}

FileIdentity identity(const File& file) {
  return identity_of(status(file));
}

std::optional<FileIdentity> identity_at(const std::string& path) {
  struct stat named {};
  if (::lstat(path.c_str(), &named) != 0) return std::nullopt;
  return identity_of(named);
}

bool is_at(const std::string& path, const FileIdentity& file) {
  struct stat named {};
  return ::stat(path.c_str(), &named) == 0 && named.st_dev == file.device &&
         named.st_ino == file.inode;
}

void read_exact(const File& file, std::span<std::byte> into, i64 offset) {
  std::array<iovec, 1> parts{{{into.data(), into.size()}}};
  read_scattered(file, parts, offset);
}

void read_scattered(const File& file, std::span<iovec> parts, i64 offset) {
  skip_bytes(parts, 0);
  while (!parts.empty()) {
    const auto count = static_cast<int>(std::min<size_t>(parts.size(), IOV_MAX));
    const ssize_t got = syscalls().preadv(file.fd(), parts.data(), count, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw read_failure(fmt::format("read at byte {}", offset), file.path(), errno);
    if (got == 0) {
      throw Error(ErrorCode::kInputChanged,
                  fmt::format("the file ends at byte {}, where more was expected", offset))
          .at({file.path(), 0, 0, {}});
    }
    skip_bytes(parts, static_cast<size_t>(got));
    offset += got;
  }
}

void write_exact(const File& file, std::span<const std::byte> from, i64 offset) {
  while (!from.empty()) {
    const ssize_t put = syscalls().pwrite(file.fd(), from.data(), from.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      const int reason = put == 0 ? EIO : errno;
      throw write_failure(fmt::format("write at byte {}", offset), file.path(), reason);
    }
    from = from.subspan(static_cast<size_t>(put));
    offset += put;
  }
}

i64 read_direct(const File& file, std::span<std::byte> into, i64 offset) {
  i64 done = 0;
  while (done < std::ssize(into) && done % kDirectAlignment == 0) {
    const iovec part{into.data() + done, into.size() - static_cast<size_t>(done)};
    const ssize_t got = syscalls().preadv(file.fd(), &part, 1, offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 || (got < 0 && errno == EINVAL)) break;
    if (got < 0)
      throw read_failure(fmt::format("read at byte {}", offset + done), file.path(), errno);
    done += got;
  }
  return done;
}

i64 write_direct(const File& file, std::span<const std::byte> from, i64 offset) {
  i64 done = 0;
  while (done < std::ssize(from) && done % kDirectAlignment == 0) {
    const auto rest = from.subspan(static_cast<size_t>(done));
    const ssize_t put = syscalls().pwrite(file.fd(), rest.data(), rest.size(), offset + done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EINVAL) break;
    if (put <= 0) {
      const int reason = put == 0 ? EIO : errno;
      throw write_failure(fmt::format("write at byte {}", offset + done), file.path(), reason);
    }
    done += put;
  }
  return done;
}

void allocate(const File& file, i64 size) {
  int result = 0;
  do {
    result = syscalls().fallocate(file.fd(), 0, 0, size);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return;
  const bool cannot_reserve = errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL;
  if (!cannot_reserve) throw write_failure("reserve " + format_bytes(size), file.path(), errno);
  set_size(file, size);
}

void set_size(const File& file, i64 size) {
  if (syscalls().ftruncate(file.fd(), size) != 0) {
    throw write_failure("set the size", file.path(), errno);
  }
}

bool share_range(const File& from, i64 from_offset, i64 bytes, const File& to, i64 to_offset) {
  const file_clone_range range{from.fd(), static_cast<std::uint64_t>(from_offset),
                               static_cast<std::uint64_t>(bytes),
                               static_cast<std::uint64_t>(to_offset)};
  if (syscalls().clone_range(to.fd(), &range) == 0) return true;
  constexpr std::array kCannot{EOPNOTSUPP, EXDEV, EINVAL, ENOTTY, ENOSYS, EPERM, ETXTBSY};
  if (std::find(kCannot.begin(), kCannot.end(), errno) != kCannot.end()) return false;
  throw write_failure(fmt::format("share the space of {} at byte {}", from.path(), to_offset),
                      to.path(), errno);
}

bool can_share(const File& from, const std::string& folder) {
  if (identity(from).size < kDirectAlignment) return false;
  const File nameless = open_or_closed(folder, O_RDWR | O_TMPFILE);
  if (!nameless.is_open()) return false;
  const file_clone_range page{from.fd(), 0, kDirectAlignment, 0};
  return syscalls().clone_range(nameless.fd(), &page) == 0;
}

void sync(const File& file) {
  if (syscalls().fsync(file.fd()) != 0) throw write_failure("sync the file", file.path(), errno);
}

void sync_folder(const std::string& path) {
  const File folder = open_or_closed(path, O_RDONLY | O_DIRECTORY);
  if (!folder.is_open()) throw write_failure("open the folder", path, errno);
  // EINVAL means that this file system has no sync of folders, so there is no error to report.
  if (syscalls().fsync(folder.fd()) != 0 && errno != EINVAL) {
    throw write_failure("sync the folder", path, errno);
  }
}

std::string read_text(const std::string& path, i64 limit) {
  return read_text(open_read(path), limit);
}

std::string read_text(const File& file, i64 limit) {
  const i64 size = identity(file).size;
  if (size > limit) {
    throw Error(ErrorCode::kLimit, fmt::format("the file has {}, expected at most {}",
                                               format_bytes(size), format_bytes(limit)))
        .at({file.path(), 0, 0, {}});
  }
  std::string text(static_cast<size_t>(size), '\0');
  read_exact(file, std::as_writable_bytes(std::span(text)), 0);
  return text;
}

void write_new_file(const std::string& path, std::string_view text) {
  File file = create_new(path);
  try {
    write_exact(file, std::as_bytes(std::span(text)), 0);
    sync(file);
    file.close_checked();
  } catch (const Error&) {
    syscalls().unlinkat(AT_FDCWD, path.c_str(), 0);
    throw;
  }
}

void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace shardtool::store
