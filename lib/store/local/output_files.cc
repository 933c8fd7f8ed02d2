#include "lib/store/local/output_files.h"

#include <fmt/format.h>

#include <cerrno>
#include <map>
#include <set>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/store/local/failure.h"
#include "lib/store/local/sync_all.h"
#include "lib/store/local/tree.h"

namespace shardtool::store {
namespace {

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

}  // namespace

std::string OutputFiles::path_of(const std::string& name) const {
  if (is_plain_name(name)) return folder_ + "/" + name;
  throw Error(ErrorCode::kWriteFailed,
              fmt::format("'{}' is not a plain file name", quote_for_message(name)))
      .at({folder_, 0, 0, {}});
}

File& OutputFiles::open(const std::string& name) {
  return files_.emplace_back(open_own_or_create(path_of(name)));
}

File& OutputFiles::create(const std::string& name) {
  return files_.emplace_back(create_new(path_of(name)));
}

void OutputFiles::sync() {
  if (sync_failed_) {
    throw Error(ErrorCode::kWriteFailed, "an earlier sync of the output failed")
        .at({folder_, 0, 0, {}});
  }
  sync_failed_ = true;
  sync_all(files_);
  sync_folder(folder_);
  sync_failed_ = false;
}

void OutputFiles::check_complete(std::span<const WrittenFile> expected) const {
  std::map<std::string_view, FileIdentity> opened;
  for (const File& file : files_) opened.insert_or_assign(file.path(), identity(file));
  for (const WrittenFile& wanted : expected) {
    const std::string path = path_of(wanted.name);
    const auto file = opened.find(path);
    const auto named = identity_at(path);
    const auto changed = [&](const std::string& how) {
      return Error(ErrorCode::kWriteFailed,
                   "the file was " + how + " by another program while the output was written")
          .at({path, 0, 0, {}});
    };
    if (!named) throw changed("deleted");
    if (file == opened.end() || !named->is_of_same_file(file->second)) throw changed("replaced");
    if (named->size == wanted.bytes) continue;
    throw changed("cut off or extended")
        .note("expected", format_bytes(wanted.bytes))
        .note("found", format_bytes(named->size));
  }
}

void OutputFiles::remove_others(std::span<const WrittenFile> expected) const {
  std::set<std::string_view> ours;
  for (const WrittenFile& file : expected) ours.insert(file.name);
  for (const std::string& name : names_in(folder_)) {
    if (ours.contains(name) || remove_tree(folder_ + "/" + name)) continue;
    throw write_failure("delete what is no part of the output", folder_ + "/" + name, errno);
  }
}

void OutputFiles::close_checked() {
  for (File& file : files_) file.close_checked();
}

}  // namespace shardtool::store
