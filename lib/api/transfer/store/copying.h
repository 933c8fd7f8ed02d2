#pragma once

#include <string>
#include <vector>

#include "lib/api/transfer/store/copies.h"
#include "lib/api/transform.h"
#include "lib/exec/files/data_file.h"

namespace shardtool::api {

/// Has the store copy what it can of an output (copies.h), and reads and sends the rest of the
/// tensors that it copies.
class StoreCopying {
 public:
  /// Copies nothing if the options have the output read back: that would save little, and cost the
  /// hashes. `run` and `sources` outlive it.
  StoreCopying(const WriteRun& run, const WriteOptions& options,
               const std::vector<exec::SourceFile>& sources);

  /// Sizes of the parts of a file.
  std::vector<i64> parts_of(size_t file, i64 bytes, i64 part_bytes) const;
  /// Settles which parts are copied; none unless `copies`.
  void settle(const std::vector<store::s3::PartedObject>& objects, bool copies);
  /// Copies the first part, which shows if the store can copy at all. False if it refuses, or if
  /// there is nothing to copy: no part is copied then.
  bool copy_first(store::s3::PartedOutput& output);

  /// True for a tensor of which the store copies bytes.
  bool has(size_t tensor) const { return copies_.has(tensor); }
  /// Stretches of such a tensor that this machine sends. They are announced to the output before
  /// copy().
  std::span<const exec::SameBytes> rest_of(size_t tensor) const { return copies_.rest_of(tensor); }

  /// Moves the tensors that `is_mine` selects and the store copies, and notes them in `copied`.
  /// Returns the other tensors of `is_mine`. Throws kInputChanged and the errors of the store.
  std::vector<bool> copy(store::s3::PartedOutput& output, const std::vector<bool>& is_mine,
                         std::vector<exec::CopiedTensor>& copied);

  /// The requests that copy() sends for the tensors that `is_mine` selects, if the store refuses
  /// none.
  SourceRequests requests(const std::vector<bool>& is_mine) const;

  i64 copied_bytes() const { return copied_bytes_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  store::s3::PartCopy request_of(const StoreCopies::Part& part) const;
  std::vector<exec::SameBytes> copy_parts(store::s3::PartedOutput& output,
                                          const std::vector<bool>& is_mine);
  std::vector<exec::SameBytes> rests_of(const std::vector<bool>& is_mine) const;
  void send(store::s3::PartedOutput& output, std::span<const exec::SameBytes> stretches) const;
  void note_refusal(const std::string& refusal, const std::string& consequence);

  const WriteRun& run_;
  const exec::Resources& resources_;
  const std::vector<exec::SourceFile>& sources_;
  StoreCopies copies_;
  i64 copied_bytes_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace shardtool::api
