#include <array>

#include "kernels/crc64/implementation.h"
#include "kernels/crc64/polynomial.h"

namespace shardtool::kernels {
namespace {

/// kTables[k][b] = b(x) * x^(64 + 8k) mod P, the contribution of byte b followed by k bytes.
constexpr auto kTables = [] {
  std::array<std::array<std::uint64_t, 256>, 8> tables{};
  for (size_t b = 0; b < 256; ++b) {
    std::uint64_t remainder = static_cast<std::uint64_t>(b) << 56;
    for (auto& table : tables) {
      for (int bit = 0; bit < 8; ++bit) remainder = times_x(remainder);
      table[b] = remainder;
    }
  }
  return tables;
}();

std::uint64_t extend_byte(std::uint64_t crc, std::byte next) {
  return (crc << 8) ^ kTables[0][(crc >> 56) ^ static_cast<std::uint8_t>(next)];
}

std::uint64_t extend_eight(std::uint64_t crc, const std::byte* next) {
  std::uint64_t sum = 0;
  for (size_t i = 0; i < 8; ++i) {
    sum ^= kTables[7 - i][(crc >> (56 - 8 * i) & 0xFF) ^ static_cast<std::uint8_t>(next[i])];
  }
  return sum;
}

std::uint64_t extend_run(std::uint64_t crc, const std::byte* at, std::int64_t run) {
  for (; run >= 8; run -= 8, at += 8) crc = extend_eight(crc, at);
  for (; run > 0; --run, ++at) crc = extend_byte(crc, *at);
  return crc;
}

std::uint64_t rows_by_table(const Rows& rows) {
  std::uint64_t crc = 0;
  for (std::int64_t i = 0; i < rows.count; ++i) {
    crc = extend_run(product(crc, rows.skip), rows.first + i * rows.src_stride, rows.run);
  }
  return crc;
}

}  // namespace

const Implementation kPortable{"portable", product, rows_by_table};

}  // namespace shardtool::kernels
