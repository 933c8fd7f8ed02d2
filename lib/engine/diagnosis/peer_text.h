#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lib/base/error.h"

/// Encodes a value as JSON for other processes of the same launch.
namespace shardtool::engine {

template <class T>
std::string to_peer(const T& value) {
  return nlohmann::json(value).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

/// Calls take(json) with the message of another process. Throws kPeerLost if it is not JSON or not
/// accepted by `take`; `what` names the expected value.
template <class Take>
void take_from_peer(std::string_view text, std::string_view what, const Take& take) {
  try {
    take(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::kPeerLost,
                fmt::format("another process sent something that is no {}", what));
  }
}

}  // namespace shardtool::engine
