#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/ops/fwd.h"
#include "lib/ops/patches/patches.h"
#include "lib/ops/schema.h"

namespace shardtool::ops {

/// Rotation by a patch's place (2-d RoPE): half of a head's pairs rotate by its row, half by its
/// column. Each half has the frequencies of a head of half the size, or every second one of the
/// whole head's. Positions without a patch are not rotated.
struct RotatePatches {
  enum class Frequencies { kOfHalf, kEverySecond };
  Patches patches;
  Frequencies frequencies = Frequencies::kOfHalf;
  bool columns_first = false;
  Number first;  ///< added to the row and column in the angle
};

/// Rotary position embedding (Su et al. 2021) of the first `fraction` of every `head` features,
/// with base `theta`; config.json may have a list of bases, one per layer. Other frequencies
/// (rope_frequencies) are configured at the first of the paths `scaling` that exists.
/// kDeinterleavedHalf first separates even and odd features, and leaves them separated.
struct Rope {
  enum class Style { kHalf, kInterleaved, kDeinterleavedHalf };
  Style style = Style::kHalf;
  Dim head;
  Number fraction{{}, 1};
  std::optional<Dim> first;  ///< number of rotated features; replaces the fraction
  bool at_end = false;       ///< rotates the last features of every head instead
  bool back = false;         ///< rotates backward
  /// Rotates by the first of the last `of_first` positions instead of the current one.
  std::optional<Dim> of_first;
  Number theta;
  std::vector<std::string> scaling{"rope_parameters", "rope_scaling"};
  std::optional<Number> yarn_factor;  ///< for cosines and sines, unless yarn's parameters have one
  /// Rotates by patches instead of positions, without scaling.
  std::optional<RotatePatches> patches;
};
void decode(Rope& op, OpDecoder& in);
void check(const Rope& op, const Widths& widths);
std::vector<plan::OpRow> rules(const Rope& op, const RuleSite& site);
Value place(const Rope& op, Walk& walk, const BoundOp& bound);
template <class N>
Part<N> apply(const Rope& op, const OpAt<N>& at);

}  // namespace shardtool::ops
