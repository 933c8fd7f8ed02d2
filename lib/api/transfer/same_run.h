#pragma once

#include "lib/api/team.h"
#include "lib/api/transfer/run_identity.h"
#include "lib/api/transfer/write_files.h"

namespace shardtool::api {

/// Throws in every process of the team when one of them would do another run than the first: sees
/// other source files (kInputChanged), or would write another output (kUsage). Names the process,
/// and what differs. Every process calls this.
void require_same_run(Team& team, const Run& run, const RunIdentity& identity);

}  // namespace shardtool::api
