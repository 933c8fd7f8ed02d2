#pragma once

#include "lib/format/gguf/header.h"

namespace shardtool::format::gguf {

/// Makes the tensors' offsets absolute and checks that they tile the data: each begins where the
/// one before it ends, rounded up to the alignment, and the last one ends the file. Removes tensors
/// that leave the file. Reports kOverlap, kHole, kTruncated and kTrailingBytes.
void place_tensors(Header& header, const Input& input, const ProblemSink& report);

}  // namespace shardtool::format::gguf
