#pragma once

#include <string>
#include <vector>

#include "shardtool/checkpoint/checkpoint.h"

namespace shardtool::checkpoint {

/// Opens these files of checkpoint.folder(), in this order, and adds them and their tensors.
/// Throws kFileMissing, naming all that are missing, what read_header throws, and kIndexInvalid
/// when two names are one file.
void read_headers(Checkpoint& checkpoint, const std::vector<std::string>& names);

/// K2: throws kIndexInvalid when two files hold tensors of one name.
void refuse_tensors_in_two_files(const Checkpoint& checkpoint);

}  // namespace shardtool::checkpoint
