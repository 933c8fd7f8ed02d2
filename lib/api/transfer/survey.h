#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/api/transfer/logical_checkpoint.h"
#include "lib/check/findings.h"
#include "lib/check/foreign_shards.h"

namespace shardtool::api {

/// A checkpoint as far as it could be opened, parts of one split, or shards without a manifest.
struct Surveyed {
  LogicalCheckpoint logical;
  std::optional<check::ForeignShards> foreign;
  std::vector<exec::SurveyedFile> files;  ///< of all parts, to open
  std::vector<std::string> shown_files;   ///< the same, for findings
  std::vector<i64> sizes;                 ///< the same, in bytes; 0 of what cannot be read
  std::optional<check::Finding> unclear;  ///< how the files belong together
};

/// Opens every location, headers only, and joins the parts of one split. What is wrong with a
/// location or a file becomes a finding, and the rest goes on without it. Throws the input errors
/// where a location gives nothing to check at all.
std::vector<Surveyed> survey(const std::vector<std::string>& locations, check::Findings& findings);

}  // namespace shardtool::api
