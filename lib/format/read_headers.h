#pragma once

#include <string>
#include <vector>

#include "lib/format/checkpoint.h"

namespace shardtool::format {

/// Adds the tensors of one open file, as tensors of the next file of the checkpoint, and what the
/// format says of the file (header_xxh3, framework). Throws when nothing of the file can be used.
using ReadFile = void (*)(Checkpoint& checkpoint, SourceFile& source, const store::File& file,
                          const ProblemSink& report);

void read_safetensors_file(Checkpoint& checkpoint, SourceFile& source, const store::File& file,
                           const ProblemSink& report);

/// Opens these files of checkpoint.folder(), in this order, and adds them and their tensors.
/// Reports kFileMissing with all missing names, the problems of `read`, and kIndexInvalid when two
/// names are one file.
void read_files(Checkpoint& checkpoint, const std::vector<std::string>& names, ReadFile read,
                const ProblemSink& report);

/// Same for safetensors files.
void read_headers(Checkpoint& checkpoint, const std::vector<std::string>& names,
                  const ProblemSink& report);

/// Checks K2: reports kIndexInvalid when two files hold tensors of one name.
void report_tensors_in_two_files(const Checkpoint& checkpoint, const ProblemSink& report);

}  // namespace shardtool::format
