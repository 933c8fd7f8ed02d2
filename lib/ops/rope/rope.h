#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/ops/fwd.h"
#include "lib/ops/patches/patches.h"
#include "lib/ops/schema.h"

namespace shardtool::ops {

/// Rotation by a patch's place (2-d RoPE): half of a head's pairs turn by its row, half by its
/// column. Each half has the frequencies of a head of half the size, or every second one of the
/// whole head's. Positions without a patch are not rotated.
struct RotatePatches {
  enum class Frequencies { kOfHalf, kEverySecond };
  Patches patches;
  Frequencies frequencies = Frequencies::kOfHalf;
  bool columns_first = false;
  Number first;  ///< the angle of the first row and column, in steps
};

/// Rotary position embedding (Su et al. 2021) of the first `fraction` of every `head` features, by
/// angles of `theta`, for which config.json may have a list with one for each layer. The config
/// asks for other frequencies (rope_frequencies) at the first of the paths `scaling` that it has.
/// kDeinterleavedHalf separates even and odd features first and leaves them so.
struct Rope {
  enum class Style { kHalf, kInterleaved, kDeinterleavedHalf };
  Style style = Style::kHalf;
  Dim head;
  Number fraction{{}, 1};
  std::optional<Dim> first;     ///< the number of rotated features, in place of a fraction
  bool at_end = false;          ///< rotates the last features of every head
  bool back = false;            ///< by the negative of the angles
  std::optional<Dim> of_first;  ///< by the first of the last so many positions
  Number theta;
  std::vector<std::string> scaling{"rope_parameters", "rope_scaling"};
  std::optional<Number> yarn_factor;  ///< of cosines and sines, unless yarn's parameters have one
  std::optional<RotatePatches> patches;  ///< in place of positions, and without scaling
};
void decode(Rope& op, OpDecoder& in);
void check(const Rope& op, const Widths& widths);
Value place(const Rope& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Rope& op, const OpAt<N>& at);

}  // namespace shardtool::ops
