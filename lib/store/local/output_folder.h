#pragma once

#include <string>

#include "lib/base/error.h"
#include "lib/store/local/file.h"
#include "lib/store/local/output_claim.h"
#include "lib/store/local/output_files.h"

namespace shardtool::store {

/// Bytes available to this user on the file system of a folder. Throws kWriteFailed.
i64 bytes_free(const std::string& folder);

/// Policy for the remains of an earlier run with the same id.
enum class Leftover { kDiscard, kContinue };

/// Folder that appears complete or not at all: all files are created in the claim's hidden folder,
/// which is renamed onto the output at the end.
///
/// On every file system, rename(2) replaces only a missing or an empty folder, so content that
/// appeared meanwhile is never replaced. Content that the claim may replace is exchanged with the
/// new folder in one step and then deleted: readers of NAME see one complete version. A killed run
/// leaves its hidden folder; the next run of this output continues or deletes it.
///
/// O1 before publication the content of NAME is unchanged
/// O2 the destructor deletes all hidden files unless keep() was called
/// O3 replaced content never has the name of a hidden folder, whose journals and records would be
///    taken for its own: the new folder takes the name hidden_replaced() before the exchange
class OutputFolder {
 public:
  /// Deletes the remains of runs with other ids. Throws kNoSpace, kWriteFailed, the errors of
  /// require_exchangeable, and kOtherRun if the folder to continue is not a folder of this user.
  OutputFolder(OutputClaim claim, const std::string& id, Leftover leftover);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// Temporary folder, with the names of the final content.
  const std::string& working_path() const { return files_.folder(); }
  std::string final_path() const { return claim_.place().path(); }
  const OutputClaim& claim() const { return claim_; }
  /// True if an earlier run's folder is continued.
  bool continues() const { return continues_; }

  /// Creates a file inside (a plain name, no separators) that publish() will sync and close.
  /// Deletes a file that an earlier run left under this name. The reference stays valid until
  /// publish().
  File& create(const std::string& name);
  /// Same, but opens a file that an earlier run left, with its content.
  File& create_or_open(const std::string& name);
  /// OutputFiles::sync.
  void sync() { files_.sync(); }
  /// Sets whether the destructor keeps the hidden folder for a later run. By default it keeps only
  /// a folder that was continued.
  void keep() { kept_ = true; }
  void give_up() { kept_ = false; }
  /// Makes everything durable and visible, once. Throws kWriteFailed (a name is no longer the file
  /// that was written, or has another size; the system refused) or kOutputExists (content appeared
  /// meanwhile). After an error the output is unpublished unless the error's "state" note says
  /// otherwise. Returns the path of replaced content that could not be deleted, or "".
  std::string publish(std::span<const WrittenFile> expected);

 private:
  void put_in_place();
  void replace_content();
  void withdraw(Error& error);

  OutputClaim claim_;
  std::string id_;
  OutputFiles files_;
  bool continues_ = false;
  bool kept_ = false;
  bool finished_ = false;  ///< the hidden folder is gone, or must not be deleted
};

}  // namespace shardtool::store
