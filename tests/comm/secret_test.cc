#include "lib/comm/tcp/secret.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace shardtool::comm {
namespace {

TEST_CASE("texts are equal in constant time exactly where they are equal") {
  CHECK(rc::check([](const std::string& a, const std::string& b) {
    RC_ASSERT(equal_in_constant_time(a, a));
    RC_ASSERT(equal_in_constant_time(a, b) == (a == b));
  }));
}

TEST_CASE("random bytes are as many as wanted, and others every time") {
  CHECK(random_bytes(32).size() == 32);
  CHECK(random_bytes(32) != random_bytes(32));
}

}  // namespace
}  // namespace shardtool::comm
