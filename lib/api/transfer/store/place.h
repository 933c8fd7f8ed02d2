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
#include "lib/base/error.h"
#include "lib/store/s3/parted_output.h"

namespace shardtool::api {

/// Uploads of a run to a store; every process of the run uses the same ones.
struct UploadTable {
  std::string run;                               ///< RunIdentity::text()
  std::string about;                             ///< exec::JournalTitle::about
  bool copies = false;                           ///< the store copies what it can (copies.h)
  std::vector<store::s3::PartedObject> objects;  ///< one per file of the plan

  std::string to_text() const;
  bool has_same_uploads(const UploadTable& other) const;
};
/// Throws kManifestInvalid. Names in the text are below `place`.
UploadTable parse_uploads(const std::string& text, const class StorePlace& place);

/// Objects below PREFIX while an output s3://bucket/PREFIX is written:
///
///     PREFIX/.shardtool-unfinished              names the owner, and has readers refuse the prefix
///                                               unless it says that an earlier output is still
///                                               there
///     PREFIX/.shardtool-<id>/uploads            UploadTable of the run `id` (RunIdentity::id)
///     PREFIX/.shardtool-<id>/journal-...        finished tensors (exec::to_lines)
///     PREFIX/.shardtool-<id>/<i>-of-<n>.share   a share that has ended (share_record.h)
///     PREFIX/.shardtool-<id>/fragments/...     fragments of parts (store/s3/parted_output.h)
///
/// An output is published by the deletion of the first, after its manifest was written.
///
/// A store has no locks. Its owner is the run that wrote the mark last: the others fail before they
/// make, replace or delete what readers can see. A run can lose the prefix between its look at the
/// mark and the request that relies on it. Stores that know If-None-Match and If-Match refuse the
/// request then; with others the output of two such runs may be damaged.
class StorePlace {
 public:
  /// Throws kUsage for a whole bucket.
  explicit StorePlace(const std::string& output);

  const std::string& prefix() const { return prefix_; }
  store::s3::Url url(std::string_view name) const;
  store::s3::Url hidden(const std::string& id, std::string_view name) const;

  /// Objects directly below the prefix, without the mark, and the ids of runs that left something.
  struct Found {
    std::vector<std::string> names;
    std::vector<std::string> runs;
    bool is_unfinished = false;  ///< there is the mark, and readers refuse the prefix
    bool is_replaced = false;    ///< there is the mark, and an earlier output
    bool has_others = false;     ///< there are other folders
    bool has_manifest() const;
    bool is_marked() const { return is_unfinished || is_replaced; }
    bool is_empty() const { return names.empty() && runs.empty() && !has_others; }
  };
  Found look() const;
  /// Throws kOutputExists unless an output may be written there.
  void require_writable(const Found& found, bool force) const;

  /// Makes `owner`, a word that no other run has, the owner of the prefix; `is_replaced`: readers
  /// may read the output that is there.
  void mark(std::string_view owner, bool is_replaced = false) const;
  /// Does mark(), in which an output that `found` has stays readable, and returns what is there
  /// now, with what the runs have left that have lost the prefix. Throws kOutputExists, and takes
  /// the mark away, if an output has appeared since `found`, and kOtherRun if the prefix is another
  /// run's already.
  Found take(const Found& found, std::string_view owner) const;
  /// Nullopt if there is no mark.
  std::optional<std::string> owner() const;
  /// Throws kOtherRun unless the prefix has this owner.
  void require_own(std::string_view owner) const;
  /// Deletes what runs have left in hidden objects, and their uploads.
  void discard_runs(const Found& found) const;
  /// Has readers refuse the prefix, and deletes the objects of `names`, an output or what was made
  /// of one, the manifest first. Throws kOtherRun unless the prefix has this owner.
  void clear(const std::vector<std::string>& names, std::string_view owner) const;
  /// Deletes the mark. Throws kOtherRun unless the prefix has this owner.
  void unmark(std::string_view owner) const;
  /// Uploads of a run; nullopt if it has none yet.
  std::optional<UploadTable> uploads(const std::string& id) const;
  /// Begins the uploads of a run, unless another process has meanwhile; returns those that count.
  /// `own` has the objects, without ids; `settle` gets it with them, before others can see it, and
  /// decides what else is in the table.
  UploadTable begin_uploads(const std::string& id, UploadTable own,
                            const std::function<void(UploadTable& own)>& settle) const;
  /// Sends a local file to the object `name` with so much memory. Throws kOtherRun unless the
  /// prefix has this owner, and the errors of store::s3::put_file.
  void put_file(const std::string& path, std::string_view name, std::string_view owner, i64 memory,
                const std::function<void()>& between) const;
  /// Prefix of the fragments of a run.
  store::s3::Url fragments(const std::string& id) const;
  /// Deletes the objects of `names` that are there.
  void remove(const std::vector<std::string>& names) const;
  /// Ends the uploads of a run and deletes its hidden objects.
  void discard(const std::string& id) const;
  /// Publishes a prefix that has its manifest: ends forgotten uploads of its objects, deletes the
  /// hidden objects of `id` and the mark. Throws kOtherRun unless the prefix has this owner.
  void publish(const std::string& id, std::string_view owner) const;
  /// Ends every upload of an object directly below the prefix.
  void abort_all_uploads() const;

  /// Names of the run's hidden objects, without those of fragments.
  std::vector<std::string> hidden_names(const std::string& id) const;
  /// Texts of those whose names begin so, by their names.
  std::vector<std::pair<std::string, std::string>> hidden_texts(const std::string& id,
                                                                std::string_view front) const;

 private:
  Error lost() const;
  store::s3::HttpAnswer own_mark(std::string_view owner) const;
  void remark(std::string_view owner) const;
  void remove_listed(std::span<const store::s3::ListedObject> objects,
                     std::string_view owner) const;

  std::string prefix_;
  store::s3::Client& client_;
};

/// A word that no other process makes.
std::string random_word();

/// Takes up what the store has of an output: parts, fragments and objects that were made. Throws
/// kOtherRun if it has neither an upload nor the object. With `is_replaced` no object was made yet:
/// those that are there are of the output before.
void take_up_parts(store::s3::PartedOutput& output, const StorePlace& place,
                   bool is_replaced = false);

/// Error for uploads that somebody has ended.
Error no_uploads(const StorePlace& place);

/// Throws kOutputAliasesInput if one of the output and a part of the source contains the other, and
/// kUsage for a whole bucket.
void check_apart_on_store(const LogicalCheckpoint& source, const std::string& output);

}  // namespace shardtool::api
