#pragma once

#include <string>
#include <string_view>

#include "lib/base/checked.h"

namespace shardtool::api {

/// A hidden folder of this process inside `parent`, deleted with its content.
class ScratchFolder {
 public:
  /// `purpose` is a part of its name. Throws the errors of creating a folder.
  ScratchFolder(const std::string& parent, std::string_view purpose);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string operator/(std::string_view name) const;
  void make_folder(std::string_view name) const;

 private:
  std::string path_;
};

/// Throws kNoSpace unless the file system has room for `bytes` and a small reserve.
void require_space(const std::string& folder, i64 bytes);

/// Incompressible bytes (splitmix64), the same in every run. Requires a multiple of 8.
std::string random_bytes(i64 bytes);

}  // namespace shardtool::api
