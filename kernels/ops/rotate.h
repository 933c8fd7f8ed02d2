#pragma once

#include "kernels/both.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// Pairing of a head's numbers: (i, i + pairs); (2i, 2i + 1); or (2i, 2i + 1), written to (i, i +
/// pairs).
enum class RotaryPairs { kHalf, kInterleaved, kDeinterleavedHalf };

/// Rotates the first 2 * pairs numbers of a head (RoPE) and copies the others:
///
///     (a, b) -> (a cos - b sin, b cos + a sin)
///
/// y must not alias x. T is a float or a residue; for residues cos and sin are arbitrary numbers.
template <class Team, class T>
SHARDTOOL_BOTH inline void rotate(const Team& team, RotaryPairs style, const T* x, i64 head,
                                  const T* cos, const T* sin, i64 pairs, T* y) {
  const bool adjacent = style != RotaryPairs::kHalf;
  const bool stays = style == RotaryPairs::kInterleaved;
  team.for_each(pairs, [=](i64 i) {
    const T a = adjacent ? x[2 * i] : x[i];
    const T b = adjacent ? x[2 * i + 1] : x[i + pairs];
    y[stays ? 2 * i : i] = a * cos[i] - b * sin[i];
    y[stays ? 2 * i + 1 : i + pairs] = b * cos[i] + a * sin[i];
  });
  team.for_each(head - 2 * pairs, [=](i64 i) { y[2 * pairs + i] = x[2 * pairs + i]; });
}

}  // namespace shardtool::kernels
