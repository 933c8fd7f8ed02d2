#pragma once

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "lib/base/error.h"

namespace shardtool::fuzz {

/// What a target says of every input. A logic_error is a finding: no target catches it.
inline void holds(bool property, const char* what) {
  if (!property) throw std::logic_error(what);
}

/// The result of reading an input, or nothing when it was refused: by an Error that says something
/// and is no bug of ours. Any other exception is a finding.
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

/// Cuts off what stands before the first `end`, or everything.
inline std::string_view take_until(std::string_view& input, char end) {
  const size_t at = std::min(input.find(end), input.size());
  const std::string_view head = input.substr(0, at);
  input.remove_prefix(std::min(at + 1, input.size()));
  return head;
}

}  // namespace shardtool::fuzz
