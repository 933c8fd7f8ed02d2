#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/comm/tcp/address.h"
#include "lib/store/local/file.h"

namespace shardtool::comm {

/// Content of the file over which processes meet.
struct MeetingNote {
  std::string secret;
  std::vector<Address> addresses;  ///< listening addresses of rank 0
};

/// File that only this user can read, complete as soon as it has its name; deleted on destruction,
/// unless another launch has replaced it meanwhile. Throws kUsage for a folder in which every user
/// may replace files, kWriteFailed for a file system that cannot restrict a file to its owner, and
/// the errors of writing.
class MeetingFile {
 public:
  MeetingFile(std::string path, const MeetingNote& note);
  ~MeetingFile();
  MeetingFile(const MeetingFile&) = delete;
  MeetingFile& operator=(const MeetingFile&) = delete;

 private:
  std::string path_;
  store::FileIdentity own_;
};

/// Note of an existing file, or the reason to reject the file; both empty if it does not exist.
struct FoundNote {
  std::optional<MeetingNote> note;
  std::string refusal;
};
/// Accepts a regular file of the effective user that no other user can read or write, and no
/// symbolic link. Throws kUsage as MeetingFile does.
FoundNote read_meeting_file(const std::string& path);

}  // namespace shardtool::comm
