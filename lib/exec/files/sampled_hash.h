#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/exec/files/data_file.h"

namespace shardtool::exec {

/// XXH3-128 of samples of each file, lowercase hex: of 32 samples of 4 KiB, the first at the
/// beginning of the file, the last at its end, the others at equal distances; of all bytes of a
/// file that is not longer than they are. Tells files with equal headers apart, for little reading.
/// Reads several files at a time. Throws the errors of SourceFile and of reading.
std::vector<std::string> sampled_hashes(std::span<const SurveyedFile> files);

}  // namespace shardtool::exec
