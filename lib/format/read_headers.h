#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/format/checkpoint.h"

namespace shardtool::format {

/// Checkpoint::format of files that this program wrote for single ranks, opened without their
/// manifest: their tensors are parts.
inline constexpr std::string_view kFilesOfRanks = "safetensors of single ranks";

/// Adds the tensors of one open file, as tensors of the next file of the checkpoint, and what the
/// format says of the file (header_xxh3, framework). Throws when nothing of the file can be used.
using ReadFile = void (*)(Checkpoint& checkpoint, SourceFile& source, const store::Reader& file,
                          const ProblemSink& report);

void read_safetensors_file(Checkpoint& checkpoint, SourceFile& source, const store::Reader& file,
                           const ProblemSink& report);

/// Opens these files of checkpoint.folder(), in this order, and adds them and their tensors.
/// Reports kFileMissing with all missing names, the problems of `read`, and kIndexInvalid when two
/// names are one file.
void read_files(Checkpoint& checkpoint, const std::vector<std::string>& names, ReadFile read,
                const ProblemSink& report);

/// True if the header of every file has DCP_SHARDING_INFO, by which torch.distributed.checkpoint
/// places the tensors of a file (torch/distributed/checkpoint/_hf_utils.py, PyTorch 2.13). False
/// for files that cannot be read, and for shards of a rank that this program wrote: these have a
/// manifest.
bool are_sharded(const std::string& folder, const std::vector<std::string>& names);

/// Reads safetensors files; tensors get their `part` from DCP_SHARDING_INFO. Reports kHeaderJson
/// for a file whose entry lacks one of its tensors.
void read_sharded_headers(Checkpoint& checkpoint, const std::vector<std::string>& names,
                          const ProblemSink& report);

/// Same for safetensors files, without parts.
void read_headers(Checkpoint& checkpoint, const std::vector<std::string>& names,
                  const ProblemSink& report);

/// Checks K2: reports kIndexInvalid when two files hold tensors of one name.
void report_tensors_in_two_files(const Checkpoint& checkpoint, const ProblemSink& report);

}  // namespace shardtool::format
