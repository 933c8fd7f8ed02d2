#include "lib/base/name_map.h"

#include <bit>
#include <cstring>
#include <random>

namespace shardtool {
namespace {

/// State of SipHash (four words) and its round function.
struct State {
  std::uint64_t a, b, c, d;

  void round() {
    a += b;
    b = std::rotl(b, 13) ^ a;
    a = std::rotl(a, 32);
    c += d;
    d = std::rotl(d, 16) ^ c;
    a += d;
    d = std::rotl(d, 21) ^ a;
    c += b;
    b = std::rotl(b, 17) ^ c;
    c = std::rotl(c, 32);
  }
  void absorb(std::uint64_t word) {
    d ^= word;
    round();
    a ^= word;
  }
};

HashKey random_key() {
  std::random_device random;
  const auto word = [&random] { return std::uint64_t{random()} << 32 | random(); };
  return {word(), word()};
}

}  // namespace

std::uint64_t sip_hash(std::string_view text, HashKey key) {
  constexpr size_t kWord = sizeof(std::uint64_t);
  State state{key.low ^ 0x736f6d6570736575, key.high ^ 0x646f72616e646f6d,
              key.low ^ 0x6c7967656e657261, key.high ^ 0x7465646279746573};
  const std::uint64_t length = std::uint64_t{text.size()} << 56;
  while (text.size() >= kWord) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), kWord);
    state.absorb(word);
    text.remove_prefix(kWord);
  }
  std::uint64_t last = 0;
  if (!text.empty()) std::memcpy(&last, text.data(), text.size());
  state.absorb(last | length);
  state.c ^= 0xff;
  for (int i = 0; i < 3; ++i) state.round();
  return state.a ^ state.b ^ state.c ^ state.d;
}

size_t NameHash::operator()(std::string_view name) const {
  static const HashKey key = random_key();
  return sip_hash(name, key);
}

}  // namespace shardtool
