#pragma once

#include <optional>
#include <ostream>

#include "lib/base/error.h"

namespace shardtool {
inline std::ostream& operator<<(std::ostream& out, ErrorCode code) {
  return out << error_info(code).id << " (" << error_info(code).title << ")";
}
}  // namespace shardtool

namespace shardtool::testing {

/// Returns the error that `action` throws, or nullopt.
template <class Action>
std::optional<Error> error_of(Action&& action) {
  try {
    static_cast<void>(action());
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

/// Returns true if the error has a note with this label and text.
inline bool has_note(const Error& error, std::string_view label, std::string_view text) {
  for (const auto& [name, value] : error.notes()) {
    if (name == label && value == text) return true;
  }
  return false;
}

}  // namespace shardtool::testing

/// Checks that the expression throws an Error with this code.
#define CHECK_ERROR(code_, ...)                                                      \
  do {                                                                               \
    const auto thrown = ::shardtool::testing::error_of([&] { return __VA_ARGS__; }); \
    CHECK_MESSAGE(thrown.has_value(), "no error from " #__VA_ARGS__);                \
    if (thrown) CHECK(thrown->code() == ::shardtool::ErrorCode::code_);              \
  } while (false)
