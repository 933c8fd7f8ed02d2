#include "kernels/xxh3/xxh3.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/kernels/text_bytes.h"

namespace shardtool::kernels {
namespace {

TEST_CASE("the hashes are those that `xxhsum -H2` prints") {
  CHECK(xxh3_hex({}) == "99aa06d3014798d86001c324468d497f");
  CHECK(xxh3_hex(bytes_of("123456789")) == "33119477ede5dcd5e9716427681d5860");
  CHECK(xxh3_hex(bytes_of(std::string(100'000, 'a'))) == "819d5302938c790308f809ef04c54838");
}

TEST_CASE("a stream in pieces has the hash of the whole message") {
  CHECK(rc::check("update in pieces = one message", [] {
    const auto size = *rc::gen::inRange<size_t>(0, 5000);
    std::vector<std::byte> message(size);
    for (size_t i = 0; i < size; ++i) message[i] = static_cast<std::byte>(i * i >> 3);
    Xxh3 hash;
    std::span<const std::byte> rest(message);
    while (!rest.empty()) {
      const auto piece = *rc::gen::inRange<size_t>(1, rest.size() + 1);
      hash.update(rest.first(piece));
      rest = rest.subspan(piece);
    }
    RC_ASSERT(hash.hex() == xxh3_hex(message));
  }));
}

TEST_CASE("asking for the hash does not end the stream, and a moved stream goes on") {
  Xxh3 first;
  first.update(bytes_of("12345"));
  CHECK(first.hex() == xxh3_hex(bytes_of("12345")));
  Xxh3 second = std::move(first);
  second.update(bytes_of("6789"));
  CHECK(second.hex() == xxh3_hex(bytes_of("123456789")));
}

}  // namespace
}  // namespace shardtool::kernels
