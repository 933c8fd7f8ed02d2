#include <fmt/format.h>

#include <cmath>

#include "kernels/ops/works.h"
#include "lib/base/error.h"
#include "lib/ops/body.h"
#include "lib/ops/patches/patch_grid.h"
#include "lib/ops/rope/rope.h"
#include "lib/ops/rope/rope_frequencies.h"

namespace shardtool::ops {
namespace {

using index::AxisMap;

/// Cosines and sines of every position; row p begins at p * pairs.
template <class N>
struct Angles {
  i64 pairs = 0;
  std::vector<N> cos, sin;
};

/// Returns the angles for residues: random numbers, equal on both sides.
Angles<Field> random_angles(i64 pairs, i64 length) {
  constexpr std::uint64_t kSeed = 0x0a9135;
  Angles<Field> angles{pairs, {}, {}};
  for (i64 i = 0; i < pairs * length; ++i) {
    angles.cos.push_back(kernels::field_random(kSeed, 2 * static_cast<std::uint64_t>(i)));
    angles.sin.push_back(kernels::field_random(kSeed, 2 * static_cast<std::uint64_t>(i) + 1));
  }
  return angles;
}

template <class N>
void add_angle(double angle, double factor, Angles<N>& angles) {
  angles.cos.push_back(static_cast<N>(std::cos(angle) * factor));
  angles.sin.push_back(static_cast<N>(std::sin(angle) * factor));
}

/// Returns the angles of the positions from `first` on.
template <class N>
Angles<N> real_angles(const RopeFrequencies& frequencies, i64 first, i64 length) {
  Angles<N> angles{std::ssize(frequencies.inverse), {}, {}};
  for (i64 p = first; p < first + length; ++p) {
    for (const double inverse : frequencies.inverse) {
      add_angle(static_cast<double>(p) * inverse, frequencies.attention_factor, angles);
    }
  }
  return angles;
}

/// Returns the angles of patches in a grid: half of the pairs rotate by the row, half by the
/// column.
template <class N>
Angles<N> patch_angles(const RotatePatches& op, i64 turned, double theta, const OpAt<N>& at) {
  const bool is_of_half = op.frequencies == RotatePatches::Frequencies::kOfHalf;
  const auto inverse = rope_frequencies(at.model.config, {}, is_of_half ? turned / 2 : turned,
                                        theta, at.inputs.length)
                           .inverse;
  const PatchGrid grid = grid_of(op.patches, at.model, at.inputs.length);
  const double first = mapping::value_of(op.first, at.model.config);
  const i64 of_side = turned / 4;
  Angles<N> angles{2 * of_side, {}, {}};
  for (i64 p = 0; p < at.inputs.length; ++p) {
    const bool is_patch = !op.patches.has_class || p + 1 < at.inputs.length;
    const PatchGrid::Place place = grid.place(p);
    for (i64 pair = 0; pair < 2 * of_side; ++pair) {
      const bool is_second = pair >= of_side;
      const bool is_column = is_second != op.columns_first;
      const i64 i = pair % of_side;
      const i64 which = is_of_half ? i : 2 * i + (is_second ? 1 : 0);
      const auto steps = first + static_cast<double>(is_column ? place.column : place.row);
      add_angle(is_patch ? steps * inverse[static_cast<size_t>(which)] : 0, 1, angles);
    }
  }
  return angles;
}

/// Returns the number of features of a head that are rotated. Throws kConfig if the head has fewer.
i64 turned_of(const Rope& op, i64 head, const ModelSizes& model) {
  const double fraction = mapping::value_of(op.fraction, model.config);
  const i64 turned =
      op.first ? model.size(*op.first) : static_cast<i64>(static_cast<double>(head) * fraction);
  if (turned >= 0 && turned <= head) return turned / 2 * 2;
  throw Error(ErrorCode::kConfig,
              fmt::format("{} says that {} of every {} features of a head are rotated",
                          model.config.file(), turned, head));
}

template <class N>
double theta_of(const Rope& op, const OpAt<N>& at) {
  return mapping::value_of(mapping::of_layer(op.theta, at.layer), at.model.config);
}

template <class N>
RopeFrequencies frequencies_of(const Rope& op, i64 turned, const OpAt<N>& at) {
  const auto& config = at.model.config;
  const auto yarn_factor =
      op.yarn_factor ? std::optional(mapping::value_of(*op.yarn_factor, config)) : std::nullopt;
  return rope_frequencies(config, op.scaling, turned, theta_of(op, at), at.inputs.length,
                          yarn_factor);
}

/// Reads what config.json says about the angles. A run of the field has angles of its own, also
/// where no others can be computed, but what the model's depend on counts as read by it.
template <class N>
void read_frequencies(const Rope& op, i64 turned, const OpAt<N>& at) {
  try {
    if (op.patches) {
      theta_of(op, at);
      mapping::value_of(op.patches->first, at.model.config);
    } else {
      frequencies_of(op, turned, at);
    }
  } catch (const Error&) {
    // A run of floats refuses this config.
  }
}

template <class N>
Angles<N> angles_of(const Rope& op, i64 head, const OpAt<N>& at) {
  const i64 turned = turned_of(op, head, at.model);
  if constexpr (is_field<N>) {
    read_frequencies(op, turned, at);
    return random_angles(turned / 2, at.inputs.length);
  } else {
    if (op.patches) return patch_angles<N>(*op.patches, turned, theta_of(op, at), at);
    const i64 before = op.of_first ? at.model.size(*op.of_first) - 1 : 0;
    return real_angles<N>(frequencies_of(op, turned, at), -before, at.inputs.length);
  }
}

kernels::RotaryPairs pairs_of(Rope::Style style) {
  switch (style) {
    case Rope::Style::kInterleaved:
      return kernels::RotaryPairs::kInterleaved;
    case Rope::Style::kDeinterleavedHalf:
      return kernels::RotaryPairs::kDeinterleavedHalf;
    case Rope::Style::kHalf:
      break;
  }
  return kernels::RotaryPairs::kHalf;
}

}  // namespace

template <class N>
Part<N> apply(const Rope& op, const OpAt<N>& at) {
  const i64 head = at.model.size(op.head);
  Angles<N> angles = angles_of(op, head, at);
  for (N& sine : angles.sin) sine = op.back ? -sine : sine;
  const Part<N>& x = *at.in[0];
  Part<N> y = x;
  const i64 rows = at.inputs.rows();
  at.bench.run(kernels::RotateHeads<N>{pairs_of(op.style),
                                       {at.bench.in(x.data), rows, x.width()},
                                       x.width() / head,
                                       head,
                                       op.at_end ? head - 2 * angles.pairs : 0,
                                       at.inputs.length,
                                       at.bench.in(angles.cos),
                                       at.bench.in(angles.sin),
                                       angles.pairs,
                                       {at.bench.in_out(y.data), rows, y.width()}});
  at.bench.finish();
  return y;
}

SHARDTOOL_BODY(Rope)

}  // namespace shardtool::ops
