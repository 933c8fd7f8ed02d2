#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/format/checkpoint.h"

namespace shardtool::format {

/// Checkpoint::format of files that shardtool wrote for single ranks and that are opened without
/// their manifest. Their tensors are shards.
inline constexpr std::string_view kFilesOfRanks = "safetensors of single ranks";

/// Adds the tensors of one open file to the checkpoint, whose next file it is, and fills the fields
/// of `source` (header_xxh3, framework). Throws if no tensor of the file can be read.
using ReadFile = void (*)(Checkpoint& checkpoint, SourceFile& source, const store::Reader& file,
                          const ProblemSink& report);

void read_safetensors_file(Checkpoint& checkpoint, SourceFile& source, const store::Reader& file,
                           const ProblemSink& report);

/// Opens these files of checkpoint.folder(), in this order, and adds them and their tensors.
/// Reports kFileMissing with all missing names, the problems of `read`, and kIndexInvalid when two
/// names are one file.
void read_files(Checkpoint& checkpoint, const std::vector<std::string>& names, ReadFile read,
                const ProblemSink& report);

/// True if the header of every file has DCP_SHARDING_INFO, the places of its tensors for
/// torch.distributed.checkpoint (torch/distributed/checkpoint/_hf_utils.py, PyTorch 2.13). False
/// for files that cannot be read, and for files that shardtool wrote for a rank, because these have
/// a manifest.
bool are_sharded(const std::string& folder, const std::vector<std::string>& names);

/// Reads safetensors files; DCP_SHARDING_INFO gives the `part` of each tensor. Reports kHeaderJson
/// for a file whose DCP_SHARDING_INFO lacks one of its tensors.
void read_sharded_headers(Checkpoint& checkpoint, const std::vector<std::string>& names,
                          const ProblemSink& report);

/// Reads safetensors files as read_files does; no tensor has a `part`.
void read_headers(Checkpoint& checkpoint, const std::vector<std::string>& names,
                  const ProblemSink& report);

/// Checks K2: reports kIndexInvalid when two files hold tensors of one name.
void report_tensors_in_two_files(const Checkpoint& checkpoint, const ProblemSink& report);

}  // namespace shardtool::format
