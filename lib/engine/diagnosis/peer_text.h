#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lib/base/error.h"

/// Encodes a value for other processes of the same launch, as CBOR: JSON has no infinities, and a
/// worst difference may be one.
namespace shardtool::engine {

template <class T>
std::string to_peer(const T& value) {
  std::string bytes;
  nlohmann::json::to_cbor(nlohmann::json(value), bytes);
  return bytes;
}

/// Calls take(json) with the message of another process. Throws kPeerLost if it is not CBOR or not
/// accepted by `take`; `what` names the expected value.
template <class Take>
void take_from_peer(std::string_view text, std::string_view what, const Take& take) {
  try {
    take(nlohmann::json::from_cbor(text));
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::kPeerLost,
                fmt::format("another process sent something that is no {}", what));
  }
}

}  // namespace shardtool::engine
