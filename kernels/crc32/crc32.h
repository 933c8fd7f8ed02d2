#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardtool::kernels {

/// Streaming CRC-32 of zip archives (CRC-32/ISO-HDLC: polynomial 0x04c11db7, reflected, inverted at
/// both ends), by tables, eight bytes a step. The CRC of no bytes is 0.
class Crc32 {
 public:
  void update(std::span<const std::byte> bytes);
  std::uint32_t value() const { return ~state_; }

 private:
  std::uint32_t state_ = 0xffffffff;
};

}  // namespace shardtool::kernels
