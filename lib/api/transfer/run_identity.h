#pragma once

#include <string>

#include "lib/api/transfer/output_plan.h"
#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/api/transfer/target_layout.h"

namespace shardtool::api {

/// Identity of a run: tensors that one run has finished are finished for any run with an equal
/// identity. Each hash has 32 hexadecimal digits.
struct RunIdentity {
  /// Every source file's size, modification and change times, inode and header, or an object's
  /// size, ETag (or time, without one) and header, and the manifests' hashes of its data.
  std::string source;
  /// Every output file with its header, the destination of each element of each tensor, and how
  /// quantised weights become floats.
  std::string target;

  /// Hash of both; the name of the run's hidden folder.
  std::string id() const;
  /// Both hashes as one word.
  std::string text() const { return source + "-" + target; }

  bool operator==(const RunIdentity&) const = default;
};

/// Returns RunIdentity::source of a checkpoint.
std::string source_hash(const LogicalCheckpoint& source);

/// Parses text(). Returns two empty hashes for invalid text.
RunIdentity parse_run_identity(const std::string& text);

RunIdentity run_identity(const LogicalCheckpoint& source, const TargetLayout& target,
                         const OutputPlan& plan);

}  // namespace shardtool::api
