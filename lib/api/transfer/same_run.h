#pragma once

#include "lib/api/team.h"
#include "lib/api/transfer/run_identity.h"
#include "lib/api/transfer/write_files.h"

namespace shardtool::api {

/// Throws in every process of the team if one of them would do another run than the first:
/// kInputChanged if it sees other source files, kUsage if it would write another output. The error
/// names the process and the difference. Every process calls this.
void require_same_run(Team& team, const WriteRun& run, const RunIdentity& identity);

}  // namespace shardtool::api
