#pragma once

#include <string>
#include <string_view>

#include "lib/store/local/file.h"
#include "lib/store/local/output_claim.h"
#include "lib/store/local/output_files.h"

namespace shardtool::store {

/// Makes a file appear whole and durable in `folder`, in place of one at that path. The text is
/// first written to `unfinished`, a path on the same file system, and then renamed. Throws
/// kWriteFailed and kNoSpace, both at `path`.
void put_whole(const std::string& unfinished, const std::string& path, const std::string& folder,
               std::string_view text);

/// Hidden folder of a run that several processes fill at the same time, on any machines that see
/// it. None of them deletes it. OutputFolder continues and publishes it when all have ended.
class SharedFolder {
 public:
  /// Creates the folder of the run `id`, unless another process has, and deletes journals and
  /// records of an earlier folder that no longer exists. Requires a shared claim. Throws kOtherRun
  /// if it is not a folder of this user, kWriteFailed, and the errors of require_exchangeable.
  SharedFolder(OutputClaim claim, const std::string& id);

  SharedFolder(SharedFolder&&) = default;
  SharedFolder& operator=(SharedFolder&&) = delete;

  const std::string& working_path() const { return files_.folder(); }
  const OutputClaim& claim() const { return claim_; }
  const OutputPlace& place() const { return claim_.place(); }
  /// True if this process created the folder.
  bool is_new() const { return is_new_; }

  /// OutputFiles::open.
  File& open(const std::string& name) { return files_.open(name); }
  void sync() { files_.sync(); }
  /// Makes a file appear beside the folder, whole and durable, in place of one at that path.
  void put_beside(const std::string& path, std::string_view text) const;

 private:
  OutputClaim claim_;
  OutputFiles files_;
  bool is_new_ = false;
};

}  // namespace shardtool::store
