#pragma once

#include <functional>
#include <string>
#include <utility>

#include "lib/base/error.h"

namespace shardtool::format {

/// Defects of a checkpoint that can still be read in part.
enum class ProblemKind {
  // a file
  kFileMissing,
  kUnreadable,
  kForeignFormat,
  kHeaderLength,
  kHeaderJson,
  kHeaderInvalid,  ///< of a format whose header is not JSON
  kTensorTwice,
  kDtype,
  kTensorSize,
  kOverlap,
  kHole,
  kTruncated,
  kTrailingBytes,
  kTorchFile,
  // files together
  kUnclearChoice,  ///< it is unclear which files of a folder make the checkpoint
  kSameFile,       ///< two names are one file
  kSplitParts,     ///< the parts of a GGUF model disagree
  kTensorInTwoFiles,
  kChunksInvalid,
  kChunksIncomplete,
  // the index
  kIndexInvalid,
  kIndexEscapes,
  kIndexNamesAbsent,
  kIndexLacks,
  // the manifest
  kManifestInvalid,
  kManifestLink,
  kFileSize,
  kHeaderChanged,
  kShardMissing,
  kShardDiffers,
  kShardUnrecorded,
};

struct Problem {
  ProblemKind kind;
  Error error;
  std::string file;  ///< name relative to the checkpoint's folder; may be empty
};

/// Receives problems after which reading can continue. A throwing sink ends the reading.
using ProblemSink = std::function<void(Problem)>;

/// Sink for callers that need a valid checkpoint.
[[noreturn]] inline void throw_problem(Problem problem) {
  throw std::move(problem.error);
}

}  // namespace shardtool::format
