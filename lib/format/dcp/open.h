#pragma once

#include <string>
#include <vector>

#include "lib/format/checkpoint.h"

namespace shardtool::format::dcp {

/// True for a folder with `.metadata`, which torch.distributed.checkpoint writes last.
bool is_checkpoint(const std::string& folder);

/// Adds the data files of checkpoint.folder() and their chunks as stored tensors: first the files
/// in `first`, in this order, then the others by name. Throws kFileMissing for an absent
/// `.metadata`, and the errors of parse_metadata. Reports absent data files, and what is wrong with
/// the frame of a chunk, which is left out. Entries that are no tensors are left out, with a
/// warning.
void read_files(Checkpoint& checkpoint, const ProblemSink& report,
                const std::vector<std::string>& first = {});

}  // namespace shardtool::format::dcp
