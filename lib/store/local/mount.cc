#include "lib/store/local/mount.h"

#include <fcntl.h>
#include <sys/statfs.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <vector>

#include "lib/store/local/file.h"
#include "lib/store/local/syscalls.h"
#include "lib/store/local/tree.h"

namespace shardtool::store {
namespace {

constexpr long kFuseMagic = 0x65735546;  // linux/magic.h
constexpr const char* kMountTable = "/proc/self/mountinfo";
constexpr std::array<std::string_view, 2> kObjectMounts = {"mountpoint-s3", "gcsfuse"};

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

/// Name of a known program in the type ("fuse.gcsfuse") or the source ("mountpoint-s3").
std::optional<std::string> known_in(const std::string& type, const std::string& source) {
  for (const std::string_view name : kObjectMounts) {
    if (type == "fuse." + std::string(name) || (type.starts_with("fuse") && source == name))
      return std::string(name);
  }
  return std::nullopt;
}

/// Text of the table of mounts, whose size nobody tells; empty without /proc.
std::string mount_table() {
  const File file(syscalls().openat(AT_FDCWD, kMountTable, O_RDONLY | O_CLOEXEC, 0), kMountTable);
  std::string text;
  std::array<char, 4096> buffer;
  iovec part{buffer.data(), buffer.size()};
  while (file.is_open()) {
    const ssize_t got = syscalls().preadv(file.fd(), &part, 1, std::ssize(text));
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  return text;
}

}  // namespace

std::optional<std::string> object_mount_in(std::string_view mountinfo, std::string_view folder) {
  std::optional<std::string> found;
  size_t longest = 0;
  std::istringstream lines{std::string(mountinfo)};
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = words_of(line);
    const auto dash = std::ranges::find(words, "-");
    if (words.size() < 5 || words.end() - dash < 3) continue;
    const std::string& mount = words[4];
    if (!is_within(folder, mount) || mount.size() < longest) continue;
    longest = mount.size();
    found = known_in(dash[1], dash[2]);
  }
  return found;
}

std::optional<std::string> object_mount(const std::string& folder) {
  struct statfs status {};
  if (syscalls().statfs(folder.c_str(), &status) != 0 || status.f_type != kFuseMagic)
    return std::nullopt;
  std::error_code error;
  const auto path = std::filesystem::canonical(folder, error);
  return error ? std::nullopt : object_mount_in(mount_table(), path.string());
}

}  // namespace shardtool::store
