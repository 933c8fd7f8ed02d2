#pragma once

#include <string>

#include "lib/base/error.h"
#include "lib/io/file.h"
#include "lib/io/output_claim.h"
#include "lib/io/output_files.h"

namespace shardtool::io {

/// What to do with what an earlier run with the same id left.
enum class Leftover { kDiscard, kContinue };

/// A folder that appears complete or not at all: all files are created in the claim's hidden
/// folder, which is renamed onto the output at the end.
///
/// rename(2) puts a folder only where nothing or an empty folder is, on every file system, so
/// content that appeared meanwhile is never replaced. Content that the claim may replace is
/// exchanged with the new folder in one step and then deleted: whoever reads NAME sees one complete
/// version. A killed run leaves its hidden folder; the next run of this output continues or deletes
/// it.
///
/// O1 unpublished, nothing under NAME has changed
/// O2 the destructor deletes everything hidden, unless it is to be kept
class OutputFolder {
 public:
  /// Deletes what runs with other ids left. Throws kNoSpace, kWriteFailed, and kOtherRun when what
  /// is to be continued is no folder of this user.
  OutputFolder(OutputClaim claim, const std::string& id, Leftover leftover);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// The temporary folder, with the final content's names.
  const std::string& working_path() const { return files_.folder(); }
  std::string final_path() const { return claim_.place().path(); }
  const OutputClaim& claim() const { return claim_; }
  /// Whether an earlier run's folder was taken up.
  bool continues() const { return continues_; }
  /// Bytes available to this user on the output's file system.
  i64 bytes_free() const;

  /// Creates a file inside (a plain name, no separators) that publish() will sync and close. What
  /// an earlier run left under this name is deleted. The reference stays valid until then.
  File& create(const std::string& name);
  /// The same, but a file that an earlier run left is opened with its content.
  File& create_or_open(const std::string& name);
  /// OutputFiles::sync.
  void sync() { files_.sync(); }
  /// Whether the destructor leaves the hidden folder, for a run that continues it; at first only
  /// what was taken up is left.
  void keep() { kept_ = true; }
  void give_up() { kept_ = false; }
  /// Makes everything durable and visible, once. Throws kWriteFailed (a name is no longer the file
  /// that was written, or has another size; the system refused) or kOutputExists (content appeared
  /// meanwhile); then nothing was published, or the error's "state" note says what is.
  void publish(std::span<const WrittenFile> expected);
  /// Where replaced content still lies because it could not be deleted; empty when there is none.
  const std::string& leftover() const { return leftover_; }

 private:
  void put_in_place();
  void withdraw(Error& error);

  OutputClaim claim_;
  std::string id_;
  OutputFiles files_;
  bool continues_ = false;
  std::string leftover_;
  bool kept_ = false;
  bool finished_ = false;  ///< the hidden folder is gone, or no longer ours to delete
};

}  // namespace shardtool::io
