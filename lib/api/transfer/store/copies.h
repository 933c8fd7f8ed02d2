#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lib/api/transfer/write_files.h"
#include "lib/exec/chunks/same_bytes.h"
#include "lib/store/s3/parted_output.h"

namespace shardtool::api {

/// Bytes of an output that the store copies from the source by itself, so that they never reach
/// this machine: those of tensors whose shards are stretches of objects of the same store. What the
/// least size of a part leaves over is read and sent.
///
/// Nobody has looked at the bytes then: the manifest has no hashes of these tensors, and a digest
/// only if the source's manifest has one.
class StoreCopies {
 public:
  StoreCopies() = default;
  /// Finds the tensors. Tied ones are read, since they must be compared.
  explicit StoreCopies(const WriteRun& run);

  /// Sizes of the parts of a file, as many of its bytes as possible in parts that are copied.
  std::vector<i64> parts_of(size_t file, i64 bytes, i64 part_bytes) const;
  /// Settles which parts of these objects, one per file, are copied.
  void settle(std::span<const store::s3::PartedObject> objects);
  /// Settles that none is.
  void copy_none();

  struct Part {
    size_t object = 0;
    size_t number = 0;  ///< from 0
    store::s3::ByteRange range;
    exec::Slot from;
    size_t tensor = 0;  ///< the first one in it
  };
  const std::vector<Part>& parts() const { return parts_; }
  /// True for a tensor of which the store copies bytes: the others are stretches, too.
  bool has(size_t tensor) const { return !is_copied_.empty() && is_copied_[tensor]; }
  /// Stretches of a tensor that are in no copied part.
  std::span<const exec::SameBytes> rest_of(size_t tensor) const { return rests_[tensor]; }
  i64 bytes() const;

 private:
  struct Stretch {
    exec::SameBytes same;
    size_t tensor = 0;
  };

  void note_rests(size_t object, std::span<const Part> parts);

  std::vector<std::vector<Stretch>> stretches_;      ///< per file, by offset
  std::vector<Part> parts_;                          ///< by object and number
  std::vector<bool> is_copied_;                      ///< per tensor
  std::vector<std::vector<exec::SameBytes>> rests_;  ///< per tensor
};

}  // namespace shardtool::api
