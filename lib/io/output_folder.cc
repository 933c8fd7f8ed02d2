#include "shardtool/io/output_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <utility>

#include "shardtool/base/text.h"
#include "shardtool/io/failure.h"
#include "shardtool/io/sync_all.h"
#include "shardtool/io/syscalls.h"
#include "shardtool/io/tree.h"

namespace shardtool::io {
namespace {

using Found = OutputPlace::Found;

constexpr mode_t kFolderMode = 0777;  // less the umask

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

}  // namespace

OutputFolder::OutputFolder(OutputClaim claim, const std::string& id, Leftover leftover)
    : claim_(std::move(claim)), id_(id), working_path_(claim_.folder_of(id)) {
  for (const std::string& other : claim_.leftovers()) {
    if (other != id || leftover == Leftover::kDiscard) claim_.discard(other);
  }
  if (syscalls().mkdir(working_path_.c_str(), kFolderMode) == 0) {
    syscalls().unlinkat(AT_FDCWD, journal_path().c_str(), 0);  // of a folder that is gone
    return;
  }
  if (errno != EEXIST || leftover == Leftover::kDiscard) {
    throw write_failure("create the folder", working_path_, errno);
  }
  continues_ = true;
  kept_ = true;
}

OutputFolder::~OutputFolder() {
  files_.clear();  // a network file system keeps the names of deleted files that are open
  if (!finished_ && !kept_) claim_.discard(id_);
}

i64 OutputFolder::bytes_free() const {
  struct statvfs status {};
  if (::statvfs(working_path_.c_str(), &status) != 0) {
    throw write_failure("look at the file system", working_path_, errno);
  }
  return static_cast<i64>(status.f_bavail * status.f_frsize);
}

std::string OutputFolder::path_of(const std::string& name) const {
  if (!is_plain_name(name)) {
    throw Error(ErrorCode::kWriteFailed,
                fmt::format("'{}' is no plain file name", quote_for_message(name)))
        .at({final_path(), 0, 0, {}});
  }
  return working_path_ + "/" + name;
}

File& OutputFolder::create(const std::string& name) {
  const std::string path = path_of(name);
  if (continues_) syscalls().unlinkat(AT_FDCWD, path.c_str(), 0);
  return files_.emplace_back(create_new(path));
}

File& OutputFolder::create_or_open(const std::string& name) {
  const std::string path = path_of(name);
  return files_.emplace_back(continues_ ? open_or_create(path) : create_new(path));
}

void OutputFolder::sync() {
  if (sync_failed_) {
    throw Error(ErrorCode::kWriteFailed, "an earlier sync of the output failed")
        .at({working_path_, 0, 0, {}});
  }
  sync_failed_ = true;
  sync_all(files_);
  sync_folder(working_path_);
  sync_failed_ = false;
}

void OutputFolder::publish() {
  sync();
  for (File& file : files_) file.close_checked();
  put_in_place();
  try {
    sync_folder(claim_.place().parent);
  } catch (Error& error) {
    withdraw(error);
    throw;
  }
  finished_ = true;
  // The rest of what was hidden: the journal, and in an exchange the old content.
  const bool replaced = claim_.place().found == Found::kContent;
  if (!claim_.discard(id_) && replaced) leftover_ = working_path_;
}

void OutputFolder::put_in_place() {
  if (claim_.place().found == Found::kContent) {
    if (syscalls().rename_exchange(working_path_.c_str(), final_path().c_str()) == 0) return;
    const int reason = errno;
    Error error = write_failure("replace the output", final_path(), reason);
    if (reason == EINVAL || reason == ENOSYS) {
      error.help("this file system cannot exchange two folders: delete the output first");
    }
    throw error;
  }
  if (syscalls().rename(working_path_.c_str(), final_path().c_str()) == 0) return;
  const bool taken = errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR;
  throw taken ? output_exists(final_path())
              : write_failure("rename the finished folder to the output", final_path(), errno);
}

/// Undoes put_in_place after a failure that leaves open whether it would survive a power cut.
void OutputFolder::withdraw(Error& error) {
  const Syscalls& call = syscalls();
  const bool replaced = claim_.place().found == Found::kContent;
  const int undone = replaced ? call.rename_exchange(final_path().c_str(), working_path_.c_str())
                              : call.rename(final_path().c_str(), working_path_.c_str());
  if (undone != 0) {
    finished_ = true;
    error.note("state", "the output is complete, but a power cut may still undo its renaming");
    return;
  }
  if (claim_.place().found == Found::kEmptyFolder) call.mkdir(final_path().c_str(), kFolderMode);
}

}  // namespace shardtool::io
