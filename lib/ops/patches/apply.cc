#include <algorithm>

#include "lib/ops/body.h"
#include "lib/ops/patches/patch_grid.h"
#include "lib/ops/patches/patches.h"

namespace shardtool::ops {
namespace {

using index::AxisMap;
using Form = Merge::Form;

/// Returns the index in the result of a feature of patch i in a square.
i64 place_of(Form form, i64 feature, i64 i, i64 width, i64 of_square) {
  if (form == Form::kMean) return feature;
  return form == Form::kBeside ? i * width + feature : feature * of_square + i;
}

template <class N>
void divide(N* row, i64 width, i64 by) {
  const N share = number_of<N>(1.0 / static_cast<double>(by));
  for (i64 f = 0; f < width; ++f) row[f] *= share;
}

}  // namespace

template <class N>
Part<N> apply(const Merge& op, const OpAt<N>& at) {
  const Inputs& inputs = at.inputs;
  const PatchGrid grid = grid_of(op.patches, at.model, inputs.length);
  const Part<N>& x = *at.in[0];
  const bool is_mean = op.form == Form::kMean;
  const i64 of_square = std::ssize(grid.square(0));
  Part<N> y =
      empty_part<N>(AxisMap::identity(x.width() * (is_mean ? 1 : of_square)), inputs.rows());
  for (i64 t = 0; t < inputs.rows(); ++t) {
    const i64 sequence = t / inputs.length * inputs.length;
    const std::vector<i64> patches = grid.square(t - sequence);
    for (i64 i = 0; i < of_square; ++i) {
      const N* const from = x.row(sequence + patches[static_cast<size_t>(i)]);
      for (i64 f = 0; f < x.width(); ++f) {
        y.row(t)[place_of(op.form, f, i, x.width(), of_square)] += from[f];
      }
    }
    if (is_mean) divide(y.row(t), y.width(), of_square);
  }
  return y;
}

template <class N>
Part<N> apply(const Insert& op, const OpAt<N>& at) {
  const Inputs& inputs = at.inputs;
  Part<N> y = *at.in[0];
  if (!inputs.has_images) return y;
  const PatchGrid grid = grid_of(op.patches, at.model, inputs.length);
  const i64 words = inputs.ends_with_word && inputs.length > 1 ? 1 : 0;
  const i64 positions = std::min(grid.squares(), inputs.length - words);
  for (i64 s = 0; s < inputs.sequences; ++s) {
    for (i64 p = 0; p < positions; ++p) {
      const i64 t = s * inputs.length + p;
      std::copy_n(at.in[1]->row(t), y.width(), y.row(t));
    }
  }
  return y;
}

template <class N>
Part<N> apply(const ClassToken& op, const OpAt<N>& at) {
  const i64 size = at.model.size(op.size);
  const std::vector<N> stored =
      load_vector(at, at.op.weights.front().front(), AxisMap::identity(size));
  Part<N> y = *at.in[0];
  for (i64 s = 1; s <= at.inputs.sequences; ++s) {
    std::copy(stored.begin(), stored.end(), y.row(s * at.inputs.length - 1));
  }
  return y;
}

SHARDTOOL_BODY(Merge)
SHARDTOOL_BODY(Insert)
SHARDTOOL_BODY(ClassToken)

}  // namespace shardtool::ops
