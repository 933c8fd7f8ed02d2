#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "kernels/both.h"
#include "lib/index/strided_copy.h"

namespace shardtool::kernels {

/// Loop limit, above the number that any checkpoint tensor needs.
inline constexpr size_t kMostCopyLoops = 8;

/// An index::StridedCopy as a work: item i copies one unit of kUnit bytes. Consecutive items copy
/// consecutive units, so that the loads and stores of a warp coalesce.
///
/// U1 kUnit divides the run, every stride, and both addresses
template <size_t kUnit>
struct UnitCopy {
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  i64 units_per_run = 0;
  i64 runs = 0;
  int loops = 0;
  std::array<index::Loop, kMostCopyLoops> loop{};  ///< outermost first

  SHARDTOOL_BOTH i64 count() const { return units_per_run * runs; }
  SHARDTOOL_BOTH void operator()(i64 i) const {
    i64 from = i % units_per_run * static_cast<i64>(kUnit);
    i64 to = from;
    i64 run = i / units_per_run;
    for (int k = loops - 1; k >= 0; --k) {
      const index::Loop& one = loop[static_cast<size_t>(k)];
      from += run % one.count * one.src_stride;
      to += run % one.count * one.dst_stride;
      run /= one.count;
    }
    std::memcpy(__builtin_assume_aligned(dst + to, kUnit),
                __builtin_assume_aligned(src + from, kUnit), kUnit);
  }
};

/// Returns the widest unit (1, 2, 4, 8 or 16 bytes) that U1 allows.
inline size_t unit_of(const index::StridedCopy& copy, const std::byte* src, const std::byte* dst) {
  std::uintptr_t all = reinterpret_cast<std::uintptr_t>(src + copy.src) |
                       reinterpret_cast<std::uintptr_t>(dst + copy.dst) |
                       static_cast<std::uintptr_t>(copy.run) | 16;
  for (const index::Loop& loop : copy.loops) {
    all |=
        static_cast<std::uintptr_t>(loop.src_stride) | static_cast<std::uintptr_t>(loop.dst_stride);
  }
  return static_cast<size_t>(all & (~all + 1));
}

/// Requires kUnit <= unit_of the same arguments. Returns nullopt for more than kMostCopyLoops
/// loops.
template <size_t kUnit>
std::optional<UnitCopy<kUnit>> unit_copy(const index::StridedCopy& copy, const std::byte* src,
                                         std::byte* dst) {
  if (copy.loops.size() > kMostCopyLoops) return std::nullopt;
  UnitCopy<kUnit> units;
  units.units_per_run = copy.run / static_cast<i64>(kUnit);
  if (copy.run == 0) return units;  // empty box; the buffers may be null
  units.src = src + copy.src;
  units.dst = dst + copy.dst;
  units.runs = 1;
  for (const index::Loop& loop : copy.loops) {
    units.loop[static_cast<size_t>(units.loops++)] = loop;
    units.runs *= loop.count;
  }
  return units;
}

}  // namespace shardtool::kernels
