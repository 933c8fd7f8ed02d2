#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardtool::comm {

/// Random bytes from the system. Throws kPeerLost if it fails.
std::string random_bytes(size_t bytes);

/// Compares in a time that depends only on the lengths.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace shardtool::comm
