#pragma once

#include <cstdint>
#include <span>

#include "kernels/cast/cast.h"

namespace shardtool::kernels {

/// Elements per call of an implementation, at most. A block stays in the first-level cache.
inline constexpr i64 kCastBlock = 1024;

/// Not exact results among the elements of one call. `inexact` includes the other two.
struct CastTally {
  std::uint32_t inexact = 0;
  std::uint32_t overflowed = 0;
  std::uint32_t underflowed = 0;
  std::uint32_t nan = 0;
};

/// One compilation of the same loops for an instruction set. All give the same results. Arguments
/// are the bits of at most kCastBlock elements.
struct CastImplementation {
  const char* name;
  CastTally (*f32_to_bf16)(const std::uint32_t* from, i64 n, std::uint16_t* to);
  CastTally (*f32_to_f16)(const std::uint32_t* from, i64 n, std::uint16_t* to);
  void (*f16_to_f32)(const std::uint16_t* from, i64 n, std::uint32_t* to);
  /// Rounds to odd. Returns false if an element is not finite, too large or below the normal F32;
  /// the results are then undefined.
  bool (*f64_to_odd_f32)(const std::uint64_t* from, i64 n, std::uint32_t* to);
};

/// Implementations that this CPU can run, fastest first. The portable one is always last.
std::span<const CastImplementation> cast_implementations();

/// `cast` with a given implementation.
CastCounts cast_with(const CastImplementation& implementation, Dtype from, Dtype to,
                     const std::byte* elements, i64 n, std::byte* result);

extern const CastImplementation kCastPortable;
#if defined(__x86_64__)
extern const CastImplementation kCastAvx2;
extern const CastImplementation kCastAvx512;
#endif

}  // namespace shardtool::kernels
