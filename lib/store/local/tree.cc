#include "lib/store/local/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <system_error>

#include "lib/store/local/failure.h"
#include "lib/store/local/syscalls.h"

namespace shardtool::store {
namespace {

/// Folder open for listing.
class Listing {
 public:
  /// Opens `path` relative to the open folder `parent`; never through a symbolic link at the end.
  Listing(int parent, const char* path)
      : fd_(syscalls().openat(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0)),
        stream_(fd_ < 0 ? nullptr : ::fdopendir(fd_)) {}
  ~Listing() {
    if (stream_ != nullptr) {
      ::closedir(stream_);  // closes fd_
    } else if (fd_ >= 0) {
      syscalls().close(fd_);
    }
  }
  Listing(const Listing&) = delete;
  Listing& operator=(const Listing&) = delete;

  bool is_open() const { return stream_ != nullptr; }
  int fd() const { return fd_; }

  /// Names in the folder, or nullopt with errno set.
  std::optional<std::vector<std::string>> names() const {
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(stream_)) names.emplace_back(entry->d_name);
    if (errno != 0) return std::nullopt;
    std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  int fd_;
  DIR* stream_;
};

bool remove_entry(int parent, const char* name);

bool remove_content(int parent, const char* folder) {
  const Listing listing(parent, folder);
  if (!listing.is_open()) return false;
  const auto names = listing.names();
  if (!names) return false;
  bool all = true;
  for (const std::string& name : *names) all = remove_entry(listing.fd(), name.c_str()) && all;
  return all;
}

bool remove_entry(int parent, const char* name) {
  if (syscalls().unlinkat(parent, name, 0) == 0) return true;
  if (errno != EISDIR) return false;
  return remove_content(parent, name) && syscalls().unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

}  // namespace

bool is_within(const std::filesystem::path& inner, const std::filesystem::path& outer) {
  return std::ranges::mismatch(outer, inner).in1 == outer.end();
}

bool leads_into(const std::string& path, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code closed;
  const fs::path inner = fs::weakly_canonical(fs::absolute(path), closed);
  const fs::path outer = closed ? fs::path() : fs::weakly_canonical(fs::absolute(folder), closed);
  return !closed && is_within(inner, outer);
}

std::vector<std::string> names_in(const std::string& folder) {
  const Listing listing(AT_FDCWD, folder.c_str());
  auto names = listing.is_open() ? listing.names() : std::nullopt;
  if (!names) throw write_failure("list the folder", folder, errno);
  return *std::move(names);
}

bool remove_tree(const std::string& path) {
  return remove_entry(AT_FDCWD, path.c_str());
}

int refusal_to_change(const std::string& folder) {
  const bool may = syscalls().faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
  return may ? 0 : errno;
}

i64 disk_bytes(const std::string& folder) {
  constexpr i64 kBytesPerBlock = 512;  // of statx, on every file system
  i64 bytes = 0;
  for (const std::string& name : names_in(folder)) {
    struct statx found {};
    const std::string path = folder + "/" + name;
    constexpr unsigned kMask = STATX_BLOCKS;
    if (syscalls().statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, kMask, &found) != 0) continue;
    bytes += static_cast<i64>(found.stx_blocks) * kBytesPerBlock;
  }
  return bytes;
}

}  // namespace shardtool::store
