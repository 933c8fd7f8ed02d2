#pragma once

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "lib/base/error.h"

namespace shardtool::fuzz {

/// Checks a property of every input. A logic_error is a finding: no target catches it.
inline void holds(bool property, const char* what) {
  if (!property) throw std::logic_error(what);
}

/// Returns the result of reading an input, or nullopt if it was rejected by an Error with a message
/// that is no internal error. Any other exception is a finding.
template <class Read>
auto accepted(Read&& read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& error) {
    holds(error.code() != ErrorCode::kInternal, error.what());
    holds(!error.message().empty(), "a refusal says nothing");
    return std::nullopt;
  }
}

/// Removes and returns the text before the first `end`, or all of it.
inline std::string_view take_until(std::string_view& input, char end) {
  const size_t at = std::min(input.find(end), input.size());
  const std::string_view head = input.substr(0, at);
  input.remove_prefix(std::min(at + 1, input.size()));
  return head;
}

}  // namespace shardtool::fuzz
