#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/transfer/output_plan.h"
#include "lib/api/transfer/run_identity.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transfer/store/upload_table.h"
#include "lib/api/transform.h"
#include "lib/base/error.h"
#include "lib/store/s3/parted_output.h"

namespace shardtool::api {

/// State of an earlier output below a marked prefix. Objects of the new output are made only once
/// nothing is left of it: before that, no object is taken for one of the new output.
enum class Former {
  kNothing,
  kPart,   ///< it is being deleted; readers refuse the prefix
  kWhole,  ///< readers may read it
};

/// Objects below PREFIX while an output s3://bucket/PREFIX is written:
///
///     PREFIX/.shardtool-unfinished              names the owner (owned_prefix.h) and the Former;
///                                               readers refuse the prefix, unless the earlier
///                                               output is whole
///     PREFIX/.shardtool-<id>/uploads            UploadTable of the run `id` (RunIdentity::id)
///     PREFIX/.shardtool-<id>/journal-...        finished tensors (exec::to_lines)
///     PREFIX/.shardtool-<id>/<i>-of-<n>.share   a share that has ended (share_record.h)
///     PREFIX/.shardtool-<id>/fragments/...      fragments of parts (store/s3/parted_output.h)
///
/// An output is published by the deletion of the first, after its manifest was written.
class StorePlace {
 public:
  /// Throws kUsage for a whole bucket.
  explicit StorePlace(const std::string& output);

  const std::string& prefix() const { return prefix_; }
  store::s3::Url url(std::string_view name) const;
  store::s3::Url mark_url() const;
  store::s3::Url hidden(const std::string& id, std::string_view name) const;

  /// Objects directly below the prefix, without the mark, and the ids of runs that left something.
  struct Found {
    std::vector<std::string> names;
    std::vector<std::string> runs;
    std::optional<Former> mark;  ///< nullopt without a mark
    bool has_others = false;     ///< there are other folders
    bool has_manifest() const;
    bool is_marked() const { return mark.has_value(); }
    /// True if there is the mark, and readers refuse the prefix.
    bool is_unfinished() const { return is_marked() && mark != Former::kWhole; }
    /// Returns the state of an earlier output for a run that begins anew. Objects below a marked
    /// prefix may be of any run.
    Former former() const;
    bool is_published() const { return has_manifest() && !is_marked(); }
    bool is_empty() const { return names.empty() && runs.empty() && !has_others; }
  };
  Found look() const;
  /// Throws kOutputExists unless an output may be written there.
  void require_writable(const Found& found, bool force) const;

  /// Deletes what runs have left in hidden objects, and their uploads.
  void discard_runs(const Found& found) const;
  /// Uploads of a run; nullopt if it has none yet.
  std::optional<UploadTable> uploads(const std::string& id) const;
  /// Begins the uploads of a run, unless another process has meanwhile; returns those that count.
  /// `own` has the objects, without ids; `settle` gets it with them, before others can see it, and
  /// decides what else is in the table.
  UploadTable begin_uploads(const std::string& id, UploadTable own,
                            const std::function<void(UploadTable& own)>& settle) const;
  /// Prefix of the fragments of a run.
  store::s3::Url fragments(const std::string& id) const;
  /// Record of a share.
  store::s3::Url record(const std::string& id, const Share& share) const;
  /// Shares of a run that have a record.
  std::vector<Share> ended_shares(const std::string& id) const;
  /// Deletes the objects of `names` that are there.
  void remove(const std::vector<std::string>& names) const;
  /// Ends the uploads of a run and deletes its hidden objects.
  void discard(const std::string& id) const;
  /// Ends every upload of an object directly below the prefix.
  void abort_all_uploads() const;

  /// Names of the run's hidden objects, without those of fragments.
  std::vector<std::string> hidden_names(const std::string& id) const;
  /// Texts of those whose names begin so, by their names.
  std::vector<std::pair<std::string, std::string>> hidden_texts(const std::string& id,
                                                                std::string_view front) const;

 private:
  std::string prefix_;
  store::s3::Client& client_;
};

/// Takes up what the store has of an output: parts, fragments and objects that were made. Returns
/// false if something is lost: the store has neither an upload nor the object. Unless `former` is
/// kNothing no object was made yet: those that are there are of the output before.
bool take_up_parts(store::s3::PartedOutput& output, Former former);

/// Error for uploads that somebody has ended.
Error no_uploads(const StorePlace& place);

/// Throws kOutputAliasesInput if one of the output and a part of the source contains the other, and
/// kUsage for a whole bucket.
void check_apart_on_store(const LogicalCheckpoint& source, const std::string& output);

}  // namespace shardtool::api
