#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/transfer/store/place.h"
#include "lib/api/transfer/write_files.h"

namespace shardtool::api {

/// Prefix s3://bucket/prefix that a run writes: the mark of the unfinished output names its owner.
///
/// A store has no locks. The owner is the run that wrote the mark last: the others fail before they
/// make, replace or delete what readers can see. A run can lose the prefix between its look at the
/// mark and the request that relies on it. Stores that know If-None-Match and If-Match refuse the
/// request then; with others the output of two such runs may be damaged.
///
/// Functions that need the ownership throw kOtherRun if the prefix has another owner.
class OwnedPrefix {
 public:
  /// `owner` is a word that no other run has; all shares of a run have the same. Marks nothing yet.
  /// `place` outlives it.
  OwnedPrefix(const StorePlace& place, std::string owner);

  /// Deletes an object that is not there. Throws kStoreRefused if the policy of the bucket forbids
  /// to delete: the output could be sent and never be published.
  void require_may_delete() const;
  /// Makes this run the owner, whoever was it, of a prefix that has `former`.
  void mark(Former former);
  /// Makes this run the owner of a prefix that had `found`. An output that is there stays readable.
  /// Returns what is there now, with what the runs have left that have lost the prefix. Throws
  /// kOutputExists, and takes the mark away, if an output has appeared since `found`, and kOtherRun
  /// if the prefix is another run's already.
  StorePlace::Found take(const StorePlace::Found& found);
  /// True once this run has made itself the owner; it may have lost the prefix since.
  bool is_marked() const { return is_marked_; }
  /// Returns the state of an earlier output below the prefix, once it is marked.
  Former former() const { return former_; }
  /// Throws kOtherRun unless this run is the owner.
  void require() const;
  /// Owner that has taken the prefix from this run; empty if there is none by now. Nullopt if it is
  /// still this run's, or if the store does not tell.
  std::optional<std::string> next_owner() const;

  /// Has readers refuse the prefix, and deletes the objects of `names`, an output or what was made
  /// of one, the manifest first. Nothing is left of an earlier output then.
  void clear(const std::vector<std::string>& names);
  /// Sends a local file to the object `name` with so much memory. Throws the errors of
  /// store::s3::put_file.
  void put_file(const std::string& path, std::string_view name, i64 memory) const;
  /// Sends manifest.json with `count` tensors.
  void put_manifest(const format::Manifest& head, size_t count, const RecordOf& record) const;
  /// Deletes the mark.
  void unmark() const;
  /// Publishes the output, whose manifest is there: ends forgotten uploads of its objects, deletes
  /// the hidden objects of the run `id`, if it has an id, and the mark.
  void publish(const std::optional<std::string>& id = {}) const;

 private:
  void put_mark(Former former) const;
  store::s3::HttpAnswer own_mark() const;
  Error lost() const;
  void change_mark(Former former);
  void remove_listed(std::span<const store::s3::ListedObject> objects) const;

  const StorePlace& place_;
  std::string owner_;
  bool is_marked_ = false;
  Former former_ = Former::kNothing;
  store::s3::Client& client_;
};

/// Returns the state of an earlier output that the text of a mark records.
Former former_in(std::string_view mark);

/// Owner that the mark of a prefix names; nullopt if there is no mark.
std::optional<std::string> owner_of(const StorePlace& place);

/// A word that no other process makes.
std::string random_word();

}  // namespace shardtool::api
