#include "shardtool/io/output_folder.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "shardtool/base/text.h"
#include "shardtool/io/failure.h"
#include "shardtool/io/sync_all.h"
#include "shardtool/io/syscalls.h"
#include "shardtool/io/tree.h"

namespace shardtool::io {
namespace {

using Found = OutputPlace::Found;

constexpr mode_t kFolderMode = 0777;  // less the umask
constexpr std::string_view kTemporarySuffix = ".tmp";

Error exists(const std::string& path) {
  return Error(ErrorCode::kOutputExists, "the output exists and is not empty")
      .at({path, 0, 0, {}})
      .help("choose another folder, or replace this one with --force");
}

OutputPlace checked_place(const std::string& path, Existing existing) {
  OutputPlace place = look_at_output(path);
  if (place.found == Found::kContent && existing == Existing::kRefuse) throw exists(place.path());
  return place;
}

bool is_id(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789-") == text.npos;
}

/// Deletes what killed runs left. Requires the lock: whoever holds it is the only living run.
void remove_stale(const OutputPlace& place) {
  const std::string prefix = place.hidden("-");
  const size_t folder = prefix.rfind('/') + 1;
  for (const std::string& name : names_in(place.parent)) {
    const std::string path = prefix.substr(0, folder) + name;
    if (!path.starts_with(prefix) || !path.ends_with(kTemporarySuffix)) continue;
    const std::string_view id = std::string_view(path).substr(prefix.size());
    if (is_id(id.substr(0, id.size() - kTemporarySuffix.size()))) remove_tree(path);
  }
}

std::string make_working_folder(const OutputPlace& place) {
  static std::atomic<int> counter = 0;
  remove_stale(place);
  std::string path = place.hidden(fmt::format("-{}-{}{}", ::getpid(), ++counter, kTemporarySuffix));
  if (syscalls().mkdir(path.c_str(), kFolderMode) != 0) {
    throw write_failure("create the folder", path, errno);
  }
  return path;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

}  // namespace

OutputFolder::OutputFolder(const std::string& path, Existing existing)
    : place_(checked_place(path, existing)),
      final_path_(place_.path()),
      lock_(place_.hidden(".lock")),
      working_path_(make_working_folder(place_)) {}

OutputFolder::~OutputFolder() {
  files_.clear();  // a network file system keeps the names of deleted files that are open
  if (!finished_) remove_tree(working_path_);
}

i64 OutputFolder::bytes_free() const {
  struct statvfs status {};
  if (::statvfs(working_path_.c_str(), &status) != 0) {
    throw write_failure("look at the file system", working_path_, errno);
  }
  return static_cast<i64>(status.f_bavail * status.f_frsize);
}

File& OutputFolder::create(const std::string& name) {
  if (!is_plain_name(name)) {
    throw Error(ErrorCode::kWriteFailed,
                fmt::format("'{}' is no plain file name", quote_for_message(name)))
        .at({final_path_, 0, 0, {}});
  }
  return files_.emplace_back(create_new(working_path_ + "/" + name));
}

void OutputFolder::publish() {
  sync_all(files_);
  for (File& file : files_) file.close_checked();
  sync_folder(working_path_);
  put_in_place();
  try {
    sync_folder(place_.parent);
  } catch (Error& error) {
    withdraw(error);
    throw;
  }
  finished_ = true;
  const bool replaced = place_.found == Found::kContent;
  if (replaced && !remove_tree(working_path_)) leftover_ = working_path_;
}

void OutputFolder::put_in_place() {
  if (place_.found == Found::kContent) {
    if (syscalls().rename_exchange(working_path_.c_str(), final_path_.c_str()) == 0) return;
    const int reason = errno;
    Error error = write_failure("replace the output", final_path_, reason);
    if (reason == EINVAL || reason == ENOSYS) {
      error.help("this file system cannot exchange two folders: delete the output first");
    }
    throw error;
  }
  if (syscalls().rename(working_path_.c_str(), final_path_.c_str()) == 0) return;
  const bool taken = errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR;
  throw taken ? exists(final_path_)
              : write_failure("rename the finished folder to the output", final_path_, errno);
}

/// Undoes put_in_place after a failure that leaves open whether it would survive a power cut.
void OutputFolder::withdraw(Error& error) {
  const Syscalls& call = syscalls();
  const bool replaced = place_.found == Found::kContent;
  const int undone = replaced ? call.rename_exchange(final_path_.c_str(), working_path_.c_str())
                              : call.rename(final_path_.c_str(), working_path_.c_str());
  if (undone != 0) {
    finished_ = true;
    error.note("state", "the output is complete, but a power cut may still undo its renaming");
    return;
  }
  if (place_.found == Found::kEmptyFolder) call.mkdir(final_path_.c_str(), kFolderMode);
}

}  // namespace shardtool::io
