#pragma once

#include <string>
#include <vector>

#include "lib/format/checkpoint.h"

namespace shardtool::format {

/// Opens these files of checkpoint.folder(), in this order, and adds them and their tensors.
/// Reports kFileMissing with all missing names, the problems of read_header, and kIndexInvalid when
/// two names are one file.
void read_headers(Checkpoint& checkpoint, const std::vector<std::string>& names,
                  const ProblemSink& report);

/// Checks K2: reports kIndexInvalid when two files hold tensors of one name.
void report_tensors_in_two_files(const Checkpoint& checkpoint, const ProblemSink& report);

}  // namespace shardtool::format
