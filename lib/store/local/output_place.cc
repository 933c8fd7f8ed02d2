#include "lib/store/local/output_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "lib/base/name_map.h"
#include "lib/base/shell.h"
#include "lib/store/local/failure.h"
#include "lib/store/local/mount.h"
#include "lib/store/local/tree.h"

namespace shardtool::store {
namespace {

constexpr size_t kLongestStem = 190;  // of 255 bytes, less the dot and the suffix

/// Name of an output in hidden names. Long names end in a hash, so that they stay different.
std::string stem_of(const std::string& name) {
  if (name.size() <= kLongestStem) return name;
  const std::string mark = fmt::format("-{:016x}", sip_hash(name, {}));
  return name.substr(0, kLongestStem - mark.size()) + mark;
}

std::string real_path(const std::string& path) {
  struct Free {
    void operator()(char* text) const { std::free(text); }
  };
  const std::unique_ptr<char, Free> real(::realpath(path.c_str(), nullptr));
  if (real != nullptr) return real.get();
  const int reason = errno;
  Error error = write_failure("find the folder of the output", path, reason);
  if (reason == ENOENT)
    error.help(fmt::format("create it first: mkdir -p {}", path_argument(path)));
  throw error;
}

/// Splits a path into parent and name.
OutputPlace split(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

/// Refuses "hf://..." and the like, which would be folders of such names.
void refuse_url(const std::string& path) {
  const size_t mark = path.find("://");
  const bool has_scheme =
      mark != path.npos && mark > 0 &&
      std::all_of(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(mark),
                  [](unsigned char c) { return std::isalnum(c) != 0; });
  if (!has_scheme) return;
  throw Error(ErrorCode::kUsage, fmt::format("nothing is written to {}", path.substr(0, mark + 3)))
      .at({path, 0, 0, {}})
      .help("an output is a folder, or s3://bucket/prefix");
}

OutputPlace resolve(const std::string& path) {
  refuse_url(path);
  OutputPlace place = split(path);
  if (place.name == "." || place.name == "..") place = split(real_path(path));
  if (place.name.empty()) {
    throw Error(ErrorCode::kWriteFailed, "the output is not a folder name").at({path, 0, 0, {}});
  }
  place.parent = real_path(place.parent);
  return place;
}

Error mount_point(const std::string& path) {
  return Error(ErrorCode::kWriteFailed, "the output is a mount point, which no rename can replace")
      .at({path, 0, 0, {}})
      .help(fmt::format("write into a new folder inside it, such as '{}/sharded'", path));
}

Error object_store_mount(const std::string& path, const std::string& program) {
  return Error(ErrorCode::kWriteFailed,
               program + " shows an object store as a folder, where no output can be renamed")
      .at({path, 0, 0, {}})
      .help("write to the store itself: -o s3://bucket/prefix");
}

OutputPlace::Found look(const std::string& path) {
  struct statx status {};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_TYPE, &status) != 0) {
    if (errno == ENOENT) return OutputPlace::Found::kNothing;
    throw write_failure("look at the output", path, errno);
  }
  if (S_ISLNK(status.stx_mode)) {
    throw Error(ErrorCode::kOutputAliasesInput,
                "the output is a symbolic link, expected a folder or nothing")
        .at({path, 0, 0, {}})
        .help("name the folder itself: nothing is written through a link");
  }
  if (!S_ISDIR(status.stx_mode)) {
    throw Error(ErrorCode::kOutputExists, "the output is a file, expected a folder or nothing")
        .at({path, 0, 0, {}})
        .help("choose another name, or delete it first");
  }
  if (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) throw mount_point(path);
  return names_in(path).empty() ? OutputPlace::Found::kEmptyFolder : OutputPlace::Found::kContent;
}

}  // namespace

std::string OutputPlace::path() const {
  return (parent == "/" ? "" : parent) + "/" + name;
}

std::string OutputPlace::hidden(const std::string& suffix) const {
  const OutputPlace beside{parent, "." + stem_of(name) + ".shardtool" + suffix};
  return beside.path();
}

OutputPlace look_at_output(const std::string& path) {
  OutputPlace place = resolve(path);
  if (const auto mount = object_mount(place.parent)) throw object_store_mount(path, *mount);
  place.found = look(place.path());
  return place;
}

}  // namespace shardtool::store
