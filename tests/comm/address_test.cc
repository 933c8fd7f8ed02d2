#include "lib/comm/tcp/address.h"

#include <doctest/doctest.h>

namespace shardtool::comm {
namespace {

TEST_CASE("addresses are written for people, and for other processes, who read the same again") {
  const std::vector<Address> addresses{{"10.0.0.1", 80}, {"fe80::1%eth0", 29'500}};
  CHECK(list_of(addresses) == "10.0.0.1:80, [fe80::1%eth0]:29500");
  CHECK(addresses_in(to_lines(addresses)) == addresses);
  CHECK(addresses_in("").empty());
  CHECK(addresses_in("10.0.0.1 80\nnonsense").size() == 1);
}

}  // namespace
}  // namespace shardtool::comm
