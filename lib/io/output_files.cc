#include "shardtool/io/output_files.h"

#include <fmt/format.h>

#include "shardtool/base/error.h"
#include "shardtool/base/text.h"
#include "shardtool/io/sync_all.h"

namespace shardtool::io {
namespace {

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

}  // namespace

std::string OutputFiles::path_of(const std::string& name) const {
  if (is_plain_name(name)) return folder_ + "/" + name;
  throw Error(ErrorCode::kWriteFailed,
              fmt::format("'{}' is no plain file name", quote_for_message(name)))
      .at({folder_, 0, 0, {}});
}

File& OutputFiles::open(const std::string& name) {
  return files_.emplace_back(open_or_create(path_of(name)));
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

void OutputFiles::close_checked() {
  for (File& file : files_) file.close_checked();
}

}  // namespace shardtool::io
