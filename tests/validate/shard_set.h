#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lib/format/manifest/manifest.h"
#include "tests/support/checkpoint_files.h"

namespace shardtool::test {

/// The numbers of one shard as a matrix. A vector has one column; the rows of several matrices
/// follow each other.
struct ShardRows {
  Bytes bytes;
  i64 rows = 0;
  i64 columns = 1;
  Dtype dtype = Dtype::kF32;

  i64 element() const { return bits(dtype) / 8; }
  std::uint8_t* at(i64 row, i64 column) {
    return bytes.data() + (row * columns + column) * element();
  }
  /// Returns the rows with these numbers, in this order.
  ShardRows rows_in(const std::vector<i64>& order) const;
  ShardRows columns_in(const std::vector<i64>& order) const;
  ShardRows transposed() const;
  /// Adds to the stored bits of a number, taken as an integer.
  void add_to_bits(i64 row, i64 column, i64 steps);
  /// Sets the stored bits of a number.
  void set_bits(i64 row, i64 column, std::uint64_t value);
};

/// Returns the same number of zeros.
ShardRows zeros(ShardRows rows);
/// Returns 0, 1, ..., n - 1 with two ranges of `size` exchanged.
std::vector<i64> exchanged(i64 n, i64 a, i64 b, i64 size);
/// Returns begin, ..., end - 1.
std::vector<i64> range(i64 begin, i64 end);

/// An output of `split` that tests damage. The manifest's names, ranges and hashes stay as written.
class ShardSet {
 public:
  explicit ShardSet(std::string folder);

  const std::string& folder() const { return folder_; }
  i64 ranks() const { return static_cast<i64>(manifest_.ranks.size()); }
  std::vector<i64> ranks_of(const std::string& tensor) const;
  index::Region region(const std::string& tensor, i64 rank) const;
  std::vector<std::string> tensors() const;

  ShardRows read(const std::string& tensor, i64 rank) const;
  void write(const std::string& tensor, i64 rank, const ShardRows& rows) const;
  /// Applies a change to a rank's part of a tensor.
  void change(const std::string& tensor, i64 rank,
              const std::function<ShardRows(ShardRows)>& change) const;
  void change_all(const std::string& tensor,
                  const std::function<ShardRows(ShardRows)>& change) const;
  /// Exchanges two ranks' parts of a tensor.
  void exchange(const std::string& tensor, i64 a, i64 b) const;
  /// Exchanges two tensors of one rank.
  void exchange(const std::string& a, const std::string& b, i64 rank) const;

  std::string file(i64 rank) const;
  void edit_manifest(const std::function<void(nlohmann::json&)>& edit) const;
  void edit_config(const std::function<void(nlohmann::json&)>& edit) const;
  /// Edits the header of a rank's file without changing its length.
  void edit_header(i64 rank, const std::function<void(nlohmann::json&)>& edit) const;

 private:
  const format::ShardRecord& record(const std::string& tensor, i64 rank) const;
  const format::TensorRecord& tensor(const std::string& name) const;

  std::string folder_;
  format::Manifest manifest_;
};

/// Returns the parts of a tensor in the order of ranks; the whole tensor if it is cut along its
/// first axis.
ShardRows below_each_other(const ShardSet& shards, const std::string& name);

}  // namespace shardtool::test
