#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lib/api/transfer/sources/replicas.h"
#include "lib/api/transfer/write_files.h"

namespace shardtool::api {

/// Returns the expected hash of holder `h` of tensor `t`; nullopt if unknown.
using ExpectedHash = std::function<std::optional<kernels::Hash128>(size_t t, size_t h)>;

/// Reads the headers and shards of a run's output back from `folder`, for this share of the
/// tensors, and compares each with its hash. Returns the bytes read. Throws kDataMismatch for the
/// first difference, and the errors of reading.
i64 verify_output(const WriteRun& run, const std::string& folder, const ExpectedHash& hash,
                  Share share, const exec::Resources& resources);

}  // namespace shardtool::api
