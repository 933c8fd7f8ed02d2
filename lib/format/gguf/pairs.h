#pragma once

#include "lib/format/gguf/cursor.h"
#include "lib/format/gguf/header.h"

namespace shardtool::format::gguf {

/// Reads a key and its value. Throws kMalformed for an unknown type of value, a bool that is
/// neither 0 nor 1, arrays nested too deeply, and at the end of the file.
Pair read_pair(Cursor& cursor);

}  // namespace shardtool::format::gguf
