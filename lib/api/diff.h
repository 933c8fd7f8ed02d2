#pragma once

#include <string>
#include <vector>

#include "lib/api/transform.h"

namespace shardtool::api {

struct DiffOptions {
  std::string a;
  std::string b;
  bool metadata_only = false;  ///< compare names, dtypes and shapes, read no data
  /// Repeat a cast or an unpacking of a's values that the manifest of b records, and compare.
  bool values = false;
  /// Path of the model's config.json for files of another tool; empty: theirs.
  std::string config = {};
  exec::Resources resources;
};

struct DiffChange {
  std::string name;
  /// "dtype F32 -> BF16", "shape ...", "data", "data after F32 -> BF16, first at element [3, 7]",
  /// "data of A's own copies, first on rank 3", "unpacked from other tensors"
  std::string what;
  i64 bytes_differing = 0;    ///< for data
  i64 first_difference = -1;  ///< for data: byte offset of the first difference in b's whole tensor
};

struct DiffReport {
  i64 common = 0;
  i64 identical = 0;
  i64 cast = 0;          ///< of the identical ones: equal after the recorded cast
  i64 dequantized = 0;   ///< of the identical ones: equal after the recorded unpacking
  i64 not_compared = 0;  ///< tensors whose cast or unpacking is recorded, without `values`
  std::vector<std::string> only_a;
  std::vector<std::string> only_b;
  std::vector<DiffChange> changed;
  std::vector<std::string> warnings;  ///< of what opening a side has left out
  i64 bytes_read = 0;
  bool equal = false;
};

/// Compares two checkpoints tensor by tensor, whole or sharded in any layout. Each side is read
/// through its own layout, without merging it first, and every copy of an element is compared.
/// Throws the errors of opening, such as kDataMismatch for files that are not those of their
/// manifest, and kCoverage if a common tensor has an element that no file of its side holds.
DiffReport diff(const DiffOptions& options);

}  // namespace shardtool::api
