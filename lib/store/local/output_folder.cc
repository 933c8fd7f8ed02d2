#include "lib/store/local/output_folder.h"

#include <fcntl.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <utility>

#include "lib/store/local/failure.h"
#include "lib/store/local/syscalls.h"
#include "lib/store/local/tree.h"

namespace shardtool::store {
namespace {

using Found = OutputPlace::Found;

constexpr mode_t kFolderMode = 0777;  // less the umask

}  // namespace

OutputFolder::OutputFolder(OutputClaim claim, const std::string& id, Leftover leftover)
    : claim_(std::move(claim)), id_(id), files_(hidden_folder(claim_.place(), id)) {
  claim_.require_replaceable();
  for (const std::string& other : claim_.leftovers()) {
    if (other != id || leftover == Leftover::kDiscard) claim_.discard(other);
  }
  claim_.discard_replaced(id);
  if (syscalls().mkdir(working_path().c_str(), kFolderMode) == 0) {
    claim_.discard_journals(id);  // journals of a folder that no longer exists
    return;
  }
  if (errno == EEXIST && leftover == Leftover::kDiscard) {
    throw Error(ErrorCode::kWriteFailed, "what an earlier run has left here cannot be deleted")
        .at({working_path(), 0, 0, {}})
        .help("delete it yourself");
  }
  if (errno != EEXIST) throw write_failure("create the folder", working_path(), errno);
  check_own_folder(working_path());
  continues_ = true;
  kept_ = true;
}

OutputFolder::~OutputFolder() {
  files_.clear();  // a network file system keeps the names of deleted files that are open
  if (!finished_ && !kept_) claim_.discard(id_);
}

i64 bytes_free(const std::string& folder) {
  struct statvfs status {};
  if (syscalls().statvfs(folder.c_str(), &status) != 0) {
    throw write_failure("look at the file system", folder, errno);
  }
  return static_cast<i64>(status.f_bavail * status.f_frsize);
}

File& OutputFolder::create(const std::string& name) {
  if (continues_) syscalls().unlinkat(AT_FDCWD, files_.path_of(name).c_str(), 0);
  return files_.create(name);
}

File& OutputFolder::create_or_open(const std::string& name) {
  return continues_ ? files_.open(name) : files_.create(name);
}

std::string OutputFolder::publish(std::span<const WrittenFile> expected) {
  files_.remove_others(expected);
  files_.sync();
  files_.check_complete(expected);
  files_.close_checked();
  put_in_place();
  try {
    sync_folder(claim_.place().parent);
  } catch (Error& error) {
    withdraw(error);
    throw;
  }
  finished_ = true;
  // Delete the other hidden files: the journal and, after an exchange, the old content.
  const bool replaced = claim_.place().found == Found::kContent;
  return !claim_.discard(id_) && replaced ? hidden_replaced(claim_.place(), id_) : "";
}

void OutputFolder::put_in_place() {
  if (claim_.place().found == Found::kContent) return replace_content();
  if (syscalls().rename(working_path().c_str(), final_path().c_str()) == 0) return;
  const bool taken = errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR;
  throw taken ? output_exists(final_path())
              : write_failure("rename the finished folder to the output", final_path(), errno);
}

void OutputFolder::replace_content() {
  const Syscalls& call = syscalls();
  const std::string replaced = hidden_replaced(claim_.place(), id_);
  if (call.rename(working_path().c_str(), replaced.c_str()) != 0) {
    throw write_failure("rename the finished folder to", replaced, errno);
  }
  if (call.rename_exchange(replaced.c_str(), final_path().c_str()) == 0) return;
  const int reason = errno;
  call.rename(replaced.c_str(), working_path().c_str());
  Error error = write_failure("replace the output", final_path(), reason);
  if (reason == EINVAL || reason == ENOSYS) {
    error.help("this file system cannot exchange two folders: delete the output first");
  }
  throw error;
}

/// Undoes put_in_place after a sync failure, when the rename might not survive a power cut.
void OutputFolder::withdraw(Error& error) {
  const Syscalls& call = syscalls();
  std::string from = final_path();
  bool is_undone = true;
  if (claim_.place().found == Found::kContent) {
    from = hidden_replaced(claim_.place(), id_);
    is_undone = call.rename_exchange(final_path().c_str(), from.c_str()) == 0;
  }
  is_undone = is_undone && call.rename(from.c_str(), working_path().c_str()) == 0;
  if (!is_undone) {
    finished_ = true;
    error.note("state", "the output is complete, but a power cut may still undo its renaming");
    return;
  }
  if (claim_.place().found == Found::kEmptyFolder) call.mkdir(final_path().c_str(), kFolderMode);
}

}  // namespace shardtool::store
