#pragma once

#include <string>

#include "lib/api/interrupted.h"

namespace shardtool::api {

/// Does interrupted_runs() for a prefix s3://bucket/folder and the prefixes directly below it.
InterruptedRuns runs_on_store(const std::string& folder);
/// Does discard_runs() for an output s3://bucket/prefix; also ends uploads that no run knows.
InterruptedRuns discard_on_store(const std::string& output);

}  // namespace shardtool::api
