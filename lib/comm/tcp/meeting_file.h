#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/comm/tcp/address.h"
#include "lib/io/file.h"

namespace shardtool::comm {

/// The content of the file over which processes meet.
struct MeetingNote {
  std::string secret;
  std::vector<Address> addresses;  ///< where rank 0 listens
};

/// A file that only this user can read, complete as soon as it has its name; deleted at the end,
/// unless another launch has put its own there meanwhile. Throws kUsage for a folder in which
/// everybody may replace files, kWriteFailed for a file system that cannot keep a file to its
/// owner, and what writing throws.
class MeetingFile {
 public:
  MeetingFile(std::string path, const MeetingNote& note);
  ~MeetingFile();
  MeetingFile(const MeetingFile&) = delete;
  MeetingFile& operator=(const MeetingFile&) = delete;

 private:
  std::string path_;
  io::FileIdentity own_;
};

/// A note, or the reason why a file that is there is not believed; neither while none is there.
struct FoundNote {
  std::optional<MeetingNote> note;
  std::string refusal;
};
/// Believes a regular file of the effective user that nobody else can read or write, and no
/// symbolic link. Throws kUsage as MeetingFile does.
FoundNote read_meeting_file(const std::string& path);

}  // namespace shardtool::comm
