#include "lib/comm/packed_error.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/throws.h"

namespace shardtool::comm {
namespace {

/// Error with this code that says something in `parts` of its places.
Error told_in(ErrorCode code, unsigned parts) {
  const auto is_in = [parts](unsigned bit) { return (parts >> bit & 1U) != 0; };
  Error error(code, is_in(0) ? "no space: \"left\"\n0 1 2" : "");
  if (is_in(1)) error.at({"a file", 3, 14, "/rules/0"});
  if (is_in(2)) error.tensor("layers.0");
  if (is_in(3)) error.note("label", "3 fields").note("empty", "");
  if (is_in(4)) error.help("delete something").help("or buy a disk");
  if (is_in(5)) error.leaderless();
  return error;
}

bool are_equal(const Error& a, const Error& b) {
  return a.code() == b.code() && a.message() == b.message() && a.place() == b.place() &&
         a.tensor_name() == b.tensor_name() && a.notes() == b.notes() &&
         a.help_lines() == b.help_lines() && a.is_leaderless() == b.is_leaderless();
}

constexpr unsigned kParts = 6;

TEST_CASE("an error of any code arrives as it was sent, whatever it says") {
  for (const ErrorInfo& info : error_table()) {
    for (unsigned parts = 0; parts < 1U << kParts; ++parts) {
      CAPTURE(info.id);
      CAPTURE(parts);
      const Error error = told_in(info.code, parts);
      CHECK(are_equal(error_in(pack(error)), error));
    }
  }
}

TEST_CASE("what is cut off or changed on its way is an error, too, and of no other type") {
  const std::string packed = pack(told_in(ErrorCode::kNoSpace, (1U << kParts) - 1));
  const std::string fields = pack(told_in(ErrorCode::kNoSpace, 0));
  for (size_t length = 0; length < fields.size(); ++length) {
    CAPTURE(length);
    CHECK(error_in(fields.substr(0, length)).code() == ErrorCode::kPeerLost);
  }
  for (size_t at = 0; at < packed.size(); ++at) {
    for (const char other : {' ', '-', '0', '9', '\xff'}) {
      CAPTURE(at);
      std::string changed = packed;
      changed[at] = other;
      CHECK_NOTHROW(error_in(changed));
    }
  }
}

}  // namespace
}  // namespace shardtool::comm
