#pragma once

#include <string>
#include <string_view>

#include "lib/engine/run/part.h"

namespace shardtool::engine {

/// Parts as bytes, for processes of one program on machines of one kind: rank, map and numbers.
template <class N>
std::string to_bytes(const Placed<N>& parts);
/// Adds them to `parts`. Throws kPeerLost when the bytes are not those of parts.
template <class N>
void add_from_bytes(std::string_view bytes, Placed<N>& parts);

}  // namespace shardtool::engine
