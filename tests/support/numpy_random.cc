#include "tests/support/numpy_random.h"

#include <bit>
#include <cmath>

namespace shardtool::test {
namespace {

using Words = std::array<std::uint32_t, 4>;

/// numpy's SeedSequence: spreads a seed over four words, and those over eight.
class SeedSequence {
 public:
  explicit SeedSequence(std::uint32_t seed) {
    for (size_t i = 0; i < pool_.size(); ++i) pool_[i] = hashed(i == 0 ? seed : 0);
    for (size_t from = 0; from < pool_.size(); ++from) {
      for (size_t to = 0; to < pool_.size(); ++to) {
        if (from != to) pool_[to] = mixed(pool_[to], hashed(pool_[from]));
      }
    }
  }

  std::array<std::uint64_t, 4> generate() const {
    std::array<std::uint64_t, 4> state{};
    std::uint32_t factor = 0x8b51f9dd;
    for (size_t i = 0; i < 2 * state.size(); ++i) {
      std::uint32_t word = pool_[i % pool_.size()] ^ factor;
      factor *= 0x58f38ded;
      word *= factor;
      word ^= word >> 16;
      state[i / 2] |= std::uint64_t{word} << (32 * (i % 2));
    }
    return state;
  }

 private:
  std::uint32_t hashed(std::uint32_t word) {
    word ^= factor_;
    factor_ *= 0x931e8875;
    word *= factor_;
    return word ^ word >> 16;
  }
  static std::uint32_t mixed(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t word = a * 0xca01f9dd - b * 0x4973f715;
    return word ^ word >> 16;
  }

  std::uint32_t factor_ = 0x43b0d7e5;
  Words pool_{};
};

/// Layers of equal area below exp(-x*x / 2); the last one begins at kEdge and has the tail.
constexpr double kEdge = 3.6541528853610088;

struct Ziggurat {
  std::array<std::uint64_t, 256> inside{};  ///< draws below it need no further test
  std::array<double, 256> width{};          ///< of a layer, per unit of a 52-bit draw
  std::array<double, 256> height{};         ///< of the curve at a layer's edge

  Ziggurat() {
    const auto curve = [](long double x) { return std::exp(-x * x / 2); };
    const long double area =
        kEdge * curve(kEdge) + std::sqrt(std::acos(-1.0L) / 2) * std::erfc(kEdge / std::sqrt(2.0L));
    const auto set = [&](size_t layer, long double edge, long double inner, long double top) {
      inside[layer] = static_cast<std::uint64_t>(inner / edge * 0x1p52L);
      width[layer] = static_cast<double>(edge / 0x1p52L);
      height[layer] = static_cast<double>(top);
    };
    long double edge = kEdge;
    set(0, area / curve(edge), edge, 1);
    for (size_t layer = 255; layer > 0; --layer) {
      const long double top = area / edge + curve(edge);
      const long double inner = layer > 1 ? std::sqrt(-2 * std::log(top)) : 0;
      set(layer, edge, inner, curve(edge));
      edge = inner;
    }
  }
};

}  // namespace

NumpyRandom::NumpyRandom(std::uint32_t seed) {
  const auto words = SeedSequence(seed).generate();
  increment_ = (Wide{words[2]} << 64 | words[3]) << 1 | 1;
  bits();
  state_ += Wide{words[0]} << 64 | words[1];
  bits();
}

std::uint64_t NumpyRandom::bits() {
  constexpr Wide kMultiplier = Wide{0x2360ed051fc65da4} << 64 | 0x4385df649fccf645;
  state_ = state_ * kMultiplier + increment_;
  const auto high = static_cast<std::uint64_t>(state_ >> 64);
  return std::rotr(high ^ static_cast<std::uint64_t>(state_), static_cast<int>(high >> 58));
}

double NumpyRandom::tail(bool is_negative) {
  while (true) {
    const double beyond = -std::log1p(-uniform()) / kEdge;
    const double height = -std::log1p(-uniform());
    if (2 * height > beyond * beyond) return is_negative ? -(kEdge + beyond) : kEdge + beyond;
  }
}

double NumpyRandom::normal() {
  static const Ziggurat kZiggurat;
  while (true) {
    const std::uint64_t random = bits();
    const size_t layer = random & 0xff;
    const std::uint64_t draw = random >> 9 & 0xfffffffffffff;
    const double size = static_cast<double>(draw) * kZiggurat.width[layer];
    const double x = (random >> 8 & 1) != 0 ? -size : size;
    if (draw < kZiggurat.inside[layer]) return x;
    if (layer == 0) return tail((draw >> 8 & 1) != 0);
    const double above = kZiggurat.height[layer - 1], below = kZiggurat.height[layer];
    if ((above - below) * uniform() + below < std::exp(-x * x / 2)) return x;
  }
}

}  // namespace shardtool::test
