#pragma once

#include <cstdint>

#include "kernels/both.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

struct Quotient {
  i64 whole = 0;
  i64 rest = 0;
};

/// i / n and i % n, for i >= 0 and n > 0. Divides 32 bits where both fit, since a GPU takes some
/// hundred instructions for 64.
SHARDTOOL_BOTH inline Quotient divided(i64 i, i64 n) {
  constexpr int kHalf = 32;
  if ((i | n) >> kHalf != 0) return {i / n, i % n};
  const auto dividend = static_cast<std::uint32_t>(i);
  const auto divisor = static_cast<std::uint32_t>(n);
  const std::uint32_t whole = dividend / divisor;
  return {whole, dividend - whole * divisor};
}

}  // namespace shardtool::kernels
