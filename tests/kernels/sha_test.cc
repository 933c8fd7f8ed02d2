#include "kernels/sha/sha.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/sha256.h"
#include "tests/kernels/text_bytes.h"

namespace shardtool::kernels {
namespace {

std::string hash_of(ShaKind kind, std::string_view text) {
  Sha hash(kind);
  hash.update(bytes_of(text));
  return hash.finish();
}

// Messages of the examples that NIST publishes with FIPS 180-4.
constexpr std::string_view kTwoBlocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

TEST_CASE("the hashes are those of the examples of FIPS 180-4") {
  CHECK(hash_of(ShaKind::kSha1, "abc") == "a9993e364706816aba3e25717850c26c9cd0d89d");
  CHECK(hash_of(ShaKind::kSha1, kTwoBlocks) == "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  CHECK(hash_of(ShaKind::kSha256, "abc") ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hash_of(ShaKind::kSha256, kTwoBlocks) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_CASE("a stream in pieces has the hash of the whole message") {
  CHECK(rc::check("update in pieces = one message", [] {
    const auto size = *rc::gen::inRange<size_t>(0, 5000);
    std::vector<std::byte> message(size);
    for (size_t i = 0; i < size; ++i) message[i] = static_cast<std::byte>(i * i >> 3);
    Sha first(ShaKind::kSha256);
    Sha hash = std::move(first);
    std::span<const std::byte> rest(message);
    while (!rest.empty()) {
      const auto piece = *rc::gen::inRange<size_t>(1, rest.size() + 1);
      hash.update(rest.first(piece));
      rest = rest.subspan(piece);
    }
    RC_ASSERT(hash.finish() ==
              sha256_hex({reinterpret_cast<const char*>(message.data()), message.size()}));
  }));
}

}  // namespace
}  // namespace shardtool::kernels
