#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lib/api/transfer/replicas.h"
#include "lib/api/transfer/write_files.h"

namespace shardtool::api {

/// The hash that holder `h` of tensor `t` must have; nullopt when it is not known.
using ExpectedHash = std::function<std::optional<kernels::Hash128>(size_t t, size_t h)>;

/// Reads the headers and shards of a run's output back from `folder`, of the tensors only this
/// share, and compares each with its hash. Returns the bytes read. Throws kDataMismatch for the
/// first that differs, and what reading throws.
i64 verify_output(const Run& run, const std::string& folder, const ExpectedHash& hash, Share share,
                  const exec::Resources& resources);

}  // namespace shardtool::api
