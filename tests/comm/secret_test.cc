#include "lib/comm/tcp/secret.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

namespace shardtool::comm {
namespace {

TEST_CASE("HMAC-SHA256 gives what RFC 4231 says") {
  struct Case {
    std::string key;
    std::string message;
    std::string digest;
  };
  const std::vector<Case> cases{
      {std::string(20, '\x0b'), "Hi There",
       "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?",
       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {std::string(20, '\xaa'), std::string(50, '\xdd'),
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
  };
  for (const Case& test : cases) CHECK(hex(hmac_sha256(test.key, test.message)) == test.digest);
}

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
