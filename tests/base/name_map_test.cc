#include "lib/base/name_map.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <set>
#include <string>
#include <vector>

#include "tests/support/colliding_names.h"

namespace shardtool {

TEST_CASE("the hash is SipHash-1-3: CPython's of bytes, under the key 0") {
  CHECK(sip_hash("abc", {}) == 0xc03bc3a0042630f2);
  CHECK(sip_hash("12345678", {}) == 0x3489982430560a87);
  CHECK(sip_hash("model.layers.0.self_attn.q_proj.weight", {}) == 0x8656cde91cac843b);
}

TEST_CASE("another key makes other hashes of every name") {
  CHECK(rc::check("keys", [](const std::string& name, std::uint64_t low, std::uint64_t high) {
    RC_PRE((low != 0 || high != 0));
    RC_ASSERT(sip_hash(name, {low, high}) != sip_hash(name, {}));
    RC_ASSERT(NameHash()(name) == NameHash()(std::string(name)));
  }));
}

TEST_CASE("names that collide in std::hash have hashes of their own") {
  const std::vector<std::string> names = test::colliding_names(10);
  std::set<size_t> fixed, drawn;
  for (const std::string& name : names) {
    fixed.insert(std::hash<std::string>()(name));
    drawn.insert(NameHash()(name));
  }
#ifdef __GLIBCXX__
  CHECK(fixed.size() == 1);
#endif
  CHECK(drawn.size() == names.size());
}

}  // namespace shardtool
