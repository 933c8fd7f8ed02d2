#include "lib/store/local/shared_folder.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

#include "lib/store/local/failure.h"
#include "lib/store/local/syscalls.h"

namespace shardtool::store {
namespace {

constexpr mode_t kSharedFolderMode = 0777;  // less the umask

}  // namespace

SharedFolder::SharedFolder(OutputClaim claim, const std::string& id)
    : claim_(std::move(claim)), files_(hidden_folder(place(), id)) {
  claim_.require_replaceable();
  // Listed before the folder is found missing: none of them is of a process that makes it now.
  std::vector<std::string> stale = hidden_journals(place(), id);
  std::ranges::move(hidden_records(place(), id), std::back_inserter(stale));
  if (!identity_at(working_path())) {
    for (const std::string& path : stale) syscalls().unlinkat(AT_FDCWD, path.c_str(), 0);
  }
  is_new_ = syscalls().mkdir(working_path().c_str(), kSharedFolderMode) == 0;
  if (is_new_) return;
  if (errno != EEXIST) throw write_failure("create the folder", working_path(), errno);
  check_own_folder(working_path());
}

void SharedFolder::put_beside(const std::string& path, std::string_view text) const {
  put_whole(files_.path_of(fmt::format(".unfinished.{:08x}", std::random_device()())), path,
            place().parent, text);
}

void put_whole(const std::string& unfinished, const std::string& path, const std::string& folder,
               std::string_view text) {
  try {
    write_new_file(unfinished, text);
  } catch (Error& error) {
    error.at({path, 0, 0, ""});  // the hidden name says nothing to anybody
    throw;
  }
  if (syscalls().rename(unfinished.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    syscalls().unlinkat(AT_FDCWD, unfinished.c_str(), 0);
    throw write_failure("rename a finished file to", path, reason);
  }
  sync_folder(folder);
}

}  // namespace shardtool::store
