#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/api/transfer/write_files.h"

namespace shardtool::api {

/// Returns the expected hash of holder `h` of tensor `t`; nullopt if unknown.
using ExpectedHash = std::function<std::optional<kernels::Hash128>(size_t t, size_t h)>;

/// Part of an output to verify.
struct VerifiedPart {
  bool headers = true;
  std::vector<bool> tensors;  ///< per tensor
};

/// Error for a tensor whose shards have no hash (TensorRecord::is_unread).
Error no_hash(const std::string& tensor);

/// Reads headers and shards of a run's output back from `folder` and compares each with its hash.
/// Returns the bytes read. Throws kDataMismatch for the first difference, and the errors of
/// reading, and no_hash.
i64 verify_output(const WriteRun& run, const std::string& folder, const ExpectedHash& hash,
                  const VerifiedPart& part, const exec::Resources& resources);

/// Warns of every weights file in the folder of a complete output that is none of its `own`. Throws
/// kDataMismatch for one of an output that is to be verified, and the errors of listing.
void look_for_extra_files(const std::string& output, const std::set<std::string>& own, bool verify,
                          std::vector<std::string>& warnings);

}  // namespace shardtool::api
