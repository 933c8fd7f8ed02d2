#pragma once

#include "lib/check/findings.h"
#include "lib/format/checkpoint.h"

namespace shardtool::check {

/// ST05: compares sizes, counts and names of the files of a checkpoint with the limits of the
/// Hugging Face Hub.
void check_hub(const format::Checkpoint& checkpoint, Findings& findings);

/// ST06: reports dangerous files in the weights' folder: pickles, and Python files that config.json
/// asks loaders to run. Files are named, never opened.
void check_safety(const format::Checkpoint& checkpoint, Findings& findings);

}  // namespace shardtool::check
