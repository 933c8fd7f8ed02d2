#include "lib/index/number_table.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace shardtool::index {

TEST_CASE("numbers are found by hash and equality, whatever the hashes are") {
  CHECK(rc::check("first of equal things", [](const std::vector<unsigned char>& values) {
    const auto bits = *rc::gen::inRange(0, 9);  // 0: all hashes are equal
    const auto hash_of = [bits](unsigned char value) {
      return std::uint64_t{value} & ((1U << bits) - 1);
    };
    NumberTable table;
    std::vector<unsigned char> things;
    const auto find = [&](unsigned char value) {
      return table.find(hash_of(value),
                        [&](int number) { return things[static_cast<size_t>(number)] == value; });
    };
    for (const unsigned char value : values) {
      const auto wanted = std::find(things.begin(), things.end(), value);
      const auto found = find(value);
      RC_ASSERT(found.has_value() == (wanted != things.end()));
      if (found) RC_ASSERT(*found == wanted - things.begin());
      if (found) continue;
      things.push_back(value);
      table.append([&](int number) { return hash_of(things[static_cast<size_t>(number)]); });
    }
  }));
}

}  // namespace shardtool::index
