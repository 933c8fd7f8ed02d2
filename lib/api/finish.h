#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/api/transform.h"
#include "lib/base/checked.h"
#include "lib/exec/resources.h"

namespace shardtool::api {

struct FinishOptions {
  std::string output;   ///< that shares were written for
  bool force = false;   ///< replace an existing output
  bool verify = false;  ///< read every shard back and compare it with its hash
  exec::Resources resources;
};

struct FinishReport {
  std::string output;
  int shares = 0;  ///< 0 if the output was complete
  i64 tensors = 0;
  i64 files = 0;              ///< without the manifest
  i64 bytes = 0;              ///< of these files
  bool was_complete = false;  ///< it was published before
  std::optional<i64> bytes_verified;
  std::vector<std::string> warnings;
};

/// Publishes an output whose shares (WriteOptions::share) have all ended: checks their records,
/// the files and their headers, and writes the manifest, byte for byte that of a run without
/// shares. Reads no source. Does nothing if the output is published. Throws kShareMissing with the
/// numbers of the shares that have not ended, kOtherRun for shares with different options, kTied,
/// kFileMissing, kDataMismatch, and the errors of writing outputs.
FinishReport finish(const FinishOptions& options);

/// State of the shares when one of them has ended.
struct LastShare {
  bool published = false;    ///< by this process or another one
  std::vector<int> missing;  ///< empty although not published: another process is publishing
  std::optional<i64> bytes_verified = {};  ///< of the whole output, if the options request it
};

/// Does finish() if all shares of the run with this id (RunIdentity::id) have ended and no other
/// process writes the output.
LastShare finish_if_last(const FinishOptions& options, const std::string& id, int shares);

}  // namespace shardtool::api
