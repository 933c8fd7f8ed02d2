#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/format/checkpoint.h"
#include "lib/format/torch/zip_directory.h"

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

/// Returns the records of all chunks that have a checksum, by the path of their data file (as
/// SourceFile::path), ascending by offset. Throws the errors of parse_metadata and
/// read_zip_directory.
std::map<std::string, std::vector<torch::ZipRecord>> checksummed_records(const std::string& folder);

}  // namespace shardtool::format::dcp
