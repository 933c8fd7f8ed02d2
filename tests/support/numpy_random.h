#pragma once

#include <array>
#include <cstdint>

namespace shardtool::test {

/// Normal numbers bit for bit as numpy's default_rng(seed).standard_normal() draws them: PCG64
/// (O'Neill, XSL-RR 128/64) seeded by a SeedSequence, and the ziggurat of 256 layers (Marsaglia,
/// Tsang).
class NumpyRandom {
 public:
  explicit NumpyRandom(std::uint32_t seed);
  double normal();

 private:
  __extension__ using Wide = unsigned __int128;

  std::uint64_t bits();
  /// In [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double tail(bool is_negative);

  Wide state_ = 0, increment_ = 0;
};

}  // namespace shardtool::test
