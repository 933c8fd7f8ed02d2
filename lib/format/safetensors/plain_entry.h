#pragma once

#include <cstddef>
#include <string_view>

#include "lib/format/safetensors/safetensors.h"

namespace shardtool::format::safetensors {

/// Reads the value of a header's entry that is written byte for byte as the safetensors library
/// writes it (serde_json: these fields in this order, no space). A header of such entries is parsed
/// and checked in half the time that JsonReader takes for it (tests/bench/README.md):
///
///     {"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}
///
/// Returns the bytes of `text` that it takes. Returns 0 for any other text and for an entry that is
/// in error; its fields are then unspecified, and JsonReader reads it and explains.
size_t read_plain_entry(std::string_view text, Entry& entry);

}  // namespace shardtool::format::safetensors
