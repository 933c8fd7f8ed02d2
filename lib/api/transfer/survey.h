#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/api/transfer/sources/logical_checkpoint.h"
#include "lib/check/findings.h"
#include "lib/check/foreign_shards.h"

namespace shardtool::api {

/// A checkpoint as far as it could be opened, the parts of one split, or shards without a manifest.
struct Surveyed {
  LogicalCheckpoint logical;
  std::optional<check::ForeignShards> foreign;
  std::vector<exec::SurveyedFile> files;  ///< files of all parts, to open
  std::vector<std::string> shown_files;   ///< their names in findings
  std::vector<i64> sizes;                 ///< their sizes in bytes; 0 if unreadable
  std::optional<check::Finding> unclear;  ///< set if the grouping of the files is unclear
};

/// Opens every location, headers only, and joins the parts of one split. A problem of a location or
/// file becomes a finding, and the survey continues. Throws the input errors if the only location
/// cannot be checked at all; counts such locations in `unreadable` if there are others.
std::vector<Surveyed> survey(const std::vector<std::string>& locations, check::Findings& findings,
                             i64& unreadable);

/// Lists the files of a checkpoint that is open already.
Surveyed survey_of(LogicalCheckpoint opened);

}  // namespace shardtool::api
