#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace shardtool::test {

/// The steps of MurmurHash64A as in libstdc++'s std::hash of strings, eight bytes at a time, and
/// their inverse.
struct Murmur {
  static constexpr std::uint64_t kFactor = 0xc6a4a7935bd1e995;
  static constexpr std::uint64_t kSeed = 0xc70f6907;

  static constexpr std::uint64_t start(size_t bytes) { return kSeed ^ bytes * kFactor; }
  static constexpr std::uint64_t step(std::uint64_t state, std::uint64_t block) {
    return (state ^ mixed(block)) * kFactor;
  }
  static constexpr std::uint64_t mixed(std::uint64_t block) {
    return folded(block * kFactor) * kFactor;
  }
  static constexpr std::uint64_t unmixed(std::uint64_t mixed) {
    return folded(mixed * inverse()) * inverse();
  }
  static constexpr std::uint64_t folded(std::uint64_t word) { return word ^ word >> 47; }
  /// Newton's iteration: each step doubles the number of correct bits.
  static constexpr std::uint64_t inverse() {
    std::uint64_t x = kFactor;
    for (int i = 0; i < 6; ++i) x *= 2 - kFactor * x;
    return x;
  }
};

/// Two texts of 16 letters and digits that lead to the same state.
struct CollidingPair {
  std::array<std::string, 2> texts;
  std::uint64_t state = 0;
};

inline CollidingPair colliding_pair(std::uint64_t state, std::mt19937_64& random) {
  constexpr std::string_view kLetters =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-";
  const auto block = [&] {
    std::array<char, 8> text{};
    for (char& c : text) c = kLetters[random() % kLetters.size()];
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), text.size());
    return word;
  };
  const auto text = [](std::uint64_t first, std::uint64_t second) {
    std::string both(16, '\0');
    std::memcpy(both.data(), &first, 8);
    std::memcpy(both.data() + 8, &second, 8);
    return both;
  };
  const std::uint64_t a = block(), b = block();
  const std::uint64_t end = Murmur::step(Murmur::step(state, a), b);
  while (true) {
    // Compensates for the first block; usable if it consists of letters.
    const std::uint64_t other = block();
    const std::uint64_t makes_up =
        Murmur::unmixed(Murmur::mixed(b) ^ Murmur::step(state, a) ^ Murmur::step(state, other));
    const std::string found = text(other, makes_up);
    if (other != a && found.find_first_not_of(kLetters) == std::string::npos)
      return {{text(a, b), found}, end};
  }
}

/// 2^doublings names of letters and digits with equal length and equal std::hash<std::string> in
/// libstdc++.
inline std::vector<std::string> colliding_names(int doublings) {
  std::mt19937_64 random(7);
  std::uint64_t state = Murmur::start(static_cast<size_t>(doublings) * 16);
  std::vector<std::string> names{""};
  for (int i = 0; i < doublings; ++i) {
    const CollidingPair pair = colliding_pair(state, random);
    state = pair.state;
    const size_t before = names.size();
    for (size_t n = 0; n < before; ++n) names.push_back(names[n] + pair.texts[1]);
    for (size_t n = 0; n < before; ++n) names[n] += pair.texts[0];
  }
  return names;
}

}  // namespace shardtool::test
