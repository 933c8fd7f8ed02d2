#pragma once

#include <string>
#include <vector>

#include "lib/api/transform.h"

namespace shardtool::api {

struct DiffOptions {
  std::string a;
  std::string b;
  bool metadata_only = false;  ///< compare names, dtypes and shapes, read no data
  exec::Resources resources;
};

struct DiffChange {
  std::string name;
  std::string what;           ///< "dtype F32 -> BF16", "shape ...", "data"
  i64 bytes_differing = 0;    ///< for data
  i64 first_difference = -1;  ///< for data: byte offset of the first difference in the whole tensor
};

struct DiffReport {
  i64 common = 0;
  i64 identical = 0;
  std::vector<std::string> only_a;
  std::vector<std::string> only_b;
  std::vector<DiffChange> changed;
  i64 bytes_read = 0;
  bool equal = false;
};

/// Compares two checkpoints tensor by tensor, whole or sharded in any layout. Each side is read
/// through its own layout, without merging it first.
DiffReport diff(const DiffOptions& options);

}  // namespace shardtool::api
