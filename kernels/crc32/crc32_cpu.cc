#include <array>
#include <bit>
#include <cstring>

#include "kernels/crc32/crc32.h"

namespace shardtool::kernels {
namespace {

constexpr std::uint32_t kCrc32Polynomial = 0xedb88320;
constexpr size_t kCrc32Step = 8;
constexpr size_t kByteValues = 256;
using Crc32Tables = std::array<std::array<std::uint32_t, kByteValues>, kCrc32Step>;

/// Table k maps a byte to its part of the remainder when k more bytes follow in the same step.
constexpr Crc32Tables make_crc32_tables() {
  Crc32Tables tables{};
  for (std::uint32_t byte = 0; byte < kByteValues; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kCrc32Polynomial : 0);
    tables[0][byte] = rest;
  }
  for (size_t k = 1; k < kCrc32Step; ++k) {
    for (size_t byte = 0; byte < kByteValues; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Crc32Tables kCrc32Tables = make_crc32_tables();
static_assert(std::endian::native == std::endian::little);

}  // namespace

void Crc32::update(std::span<const std::byte> bytes) {
  std::uint32_t state = state_;
  for (; bytes.size() >= kCrc32Step; bytes = bytes.subspan(kCrc32Step)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), kCrc32Step);
    word ^= state;
    state = 0;
    for (size_t i = 0; i < kCrc32Step; ++i)
      state ^= kCrc32Tables[kCrc32Step - 1 - i][(word >> (8 * i)) & 0xff];
  }
  for (const std::byte byte : bytes) {
    state = (state >> 8) ^ kCrc32Tables[0][(state ^ static_cast<std::uint32_t>(byte)) & 0xff];
  }
  state_ = state;
}

}  // namespace shardtool::kernels
