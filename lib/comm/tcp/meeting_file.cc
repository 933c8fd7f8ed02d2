#include "lib/comm/tcp/meeting_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>
#include <utility>

#include "lib/base/error.h"
#include "lib/store/local/syscalls.h"

namespace shardtool::comm {
namespace {

constexpr i64 kMaxNoteBytes = 1 << 20;
constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;
constexpr unsigned kOthers = S_IRWXG | S_IRWXO;
constexpr unsigned kModeBits = 07777;

/// Rejects folders in which every user could replace the file.
void check_folder(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent;
  struct stat found {};
  if (::stat(folder.c_str(), &found) != 0) return;  // opening the file reports this
  if ((found.st_mode & S_IWOTH) == 0 || (found.st_mode & S_ISVTX) != 0) return;
  throw Error(ErrorCode::kUsage, "everybody may replace files in the folder where processes meet")
      .at({folder, 0, 0, {}})
      .note("mode", fmt::format("{:04o}", found.st_mode & kModeBits))
      .help("chmod o-w or chmod +t the folder, or meet in a folder inside it");
}

/// Reason to reject a file; empty if only this user can have written it, and can read it.
std::string reason_to_doubt(int fd) {
  struct stat found {};
  if (::fstat(fd, &found) != 0) return "the system does not say whose file it is";
  if (!S_ISREG(found.st_mode)) return "it is not a regular file";
  if (found.st_uid != ::geteuid()) {
    return fmt::format("it belongs to user {}, expected {}", found.st_uid, ::geteuid());
  }
  if ((found.st_mode & kOthers) == 0) return {};
  return fmt::format("others may use it: its mode is {:04o}, expected 0600",
                     found.st_mode & kModeBits);
}

std::string text_in(const store::File& file) {
  const i64 size = store::identity(file).size;
  if (size > kMaxNoteBytes) return {};
  std::string text(static_cast<size_t>(size), '\0');
  store::read_exact(file, std::as_writable_bytes(std::span(text)), 0);
  return text;
}

/// Parses the secret in the first line and an address in each other line.
MeetingNote parse_note(const std::string& text) {
  const size_t line = std::min(text.find('\n'), text.size());
  return {text.substr(0, line), addresses_in(text.substr(line))};
}

/// Creates a file with owner-only access from the first moment.
store::File create_own(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  store::File file(store::syscalls().openat(AT_FDCWD, path.c_str(), kFlags, kOwnerOnly), path);
  if (!file.is_open()) {
    throw Error(ErrorCode::kWriteFailed, "cannot create the file over which the processes meet")
        .at({path, 0, 0, {}});
  }
  if (const std::string doubt = reason_to_doubt(file.fd()); !doubt.empty()) {
    store::syscalls().unlinkat(AT_FDCWD, path.c_str(), 0);
    throw Error(ErrorCode::kWriteFailed, "the file system cannot keep a secret file to its owner")
        .at({path, 0, 0, {}})
        .note("found", doubt)
        .help("meet on a file system that has owners and modes");
  }
  return file;
}

}  // namespace

MeetingFile::MeetingFile(std::string path, const MeetingNote& note) : path_(std::move(path)) {
  check_folder(path_);
  const std::string whole = path_ + ".new";  // replaces the remains of an earlier launch
  store::syscalls().unlinkat(AT_FDCWD, whole.c_str(), 0);
  {
    const std::string text = note.secret + "\n" + to_lines(note.addresses);
    const store::File file = create_own(whole);
    try {
      own_ = store::identity(file);
      store::write_exact(file, std::as_bytes(std::span(text)), 0);
    } catch (const Error&) {
      store::syscalls().unlinkat(AT_FDCWD, whole.c_str(), 0);
      throw;
    }
  }
  if (store::syscalls().rename(whole.c_str(), path_.c_str()) == 0) return;
  store::syscalls().unlinkat(AT_FDCWD, whole.c_str(), 0);
  throw Error(ErrorCode::kWriteFailed, "cannot name the file over which the processes meet")
      .at({path_, 0, 0, {}});
}

MeetingFile::~MeetingFile() {
  if (store::is_at(path_, own_)) store::syscalls().unlinkat(AT_FDCWD, path_.c_str(), 0);
}

FoundNote read_meeting_file(const std::string& path) {
  check_folder(path);
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const store::File file(store::syscalls().openat(AT_FDCWD, path.c_str(), kFlags, 0), path);
  if (!file.is_open()) {
    if (errno == ELOOP) return {{}, "it is a symbolic link"};
    return {{}, errno == EACCES ? "this user may not read it" : ""};
  }
  if (std::string doubt = reason_to_doubt(file.fd()); !doubt.empty()) return {{}, std::move(doubt)};
  try {
    return {parse_note(text_in(file)), {}};
  } catch (const Error& error) {
    return {{}, error.message()};  // it may be replaced while it is read
  }
}

}  // namespace shardtool::comm
