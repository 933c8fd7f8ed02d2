#pragma once

#include <string>
#include <string_view>

#include "lib/engine/run/part.h"

namespace shardtool::engine {

/// Serialises parts (rank, map and numbers) for processes of one program on machines of one kind.
template <class N>
std::string to_bytes(const Placed<N>& parts);
/// Adds serialised parts to `parts`. Throws kPeerLost if the bytes are malformed.
template <class N>
void add_from_bytes(std::string_view bytes, Placed<N>& parts);

}  // namespace shardtool::engine
