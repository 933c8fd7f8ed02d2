#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
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

/// The records of the chunks of a data file that have a checksum.
struct FileRecords {
  std::vector<torch::ZipRecord> records;  ///< ascending by offset
  std::optional<Error> unreadable = {};   ///< of the file, or of read_zip_directory
};
/// Returns the records of all data files by their path (as SourceFile::path). Throws the errors of
/// parse_metadata.
std::map<std::string, FileRecords> checksummed_records(const std::string& folder);

}  // namespace shardtool::format::dcp
