#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/ops/body.h"
#include "lib/ops/inputs/inputs.h"

namespace shardtool::ops {
namespace {

using index::AxisMap;
using kernels::RowView;

/// Gathers the input frames of every output frame side by side in the order of the weights: for
/// each feature its taps. Before a sequence there are zeros; in the field there are random numbers,
/// so that the first position uses every tap.
template <class N>
class Frames {
 public:
  Frames(const Part<N>& x, i64 length, i64 frames, i64 taps, i64 stride)
      : columns_(x.width() / frames),
        taps_(taps),
        of_sequence_(length * frames),
        x_{x.data.data(), std::ssize(x.data) / columns_, columns_} {
    for (i64 from = 0; from < x_.count; from += of_sequence_) {
      for (i64 o = 0; o < of_sequence_; o += stride) append(from, o - (taps - 1) / 2);
    }
  }

  RowView<const N> rows() const {
    const i64 width = columns_ * taps_;
    return {data_.data(), std::ssize(data_) / width, width};
  }

 private:
  void append(i64 sequence, i64 first) {
    for (i64 c = 0; c < columns_; ++c) {
      for (i64 k = 0; k < taps_; ++k) data_.push_back(at(sequence, first + k, c));
    }
  }
  N at(i64 sequence, i64 frame, i64 column) const {
    constexpr std::uint64_t kSeed = 0xf7a3e;
    if (frame >= 0 && frame < of_sequence_) return x_.row(sequence + frame)[column];
    if (is_field<N> && frame < 0) {
      return any_number<N>(kSeed, static_cast<std::uint64_t>(column - frame * columns_));
    }
    return {};
  }

  i64 columns_, taps_, of_sequence_;
  RowView<const N> x_;
  std::vector<N> data_;
};

}  // namespace

template <class N>
Part<N> apply(const ExtraInput& op, const OpAt<N>& at) {
  const Inputs& inputs = at.inputs;
  Part<N> y = empty_part<N>(AxisMap::identity(at.model.size(op.size)), inputs.rows());
  if constexpr (!is_field<N>) {
    if (!inputs.given.empty() && inputs.given.size() != y.data.size()) {
      throw Error(ErrorCode::kShapeMismatch, "the input beside the tokens has another size")
          .note("found", std::to_string(inputs.given.size()))
          .note("expected", std::to_string(y.data.size()));
    }
    std::copy(inputs.given.begin(), inputs.given.end(), y.data.begin());
    if (!inputs.given.empty()) return y;
  }
  constexpr std::uint64_t kSeed = 0x61e9;
  const std::uint64_t seed = kernels::hashed(inputs.seed, kSeed);
  for (size_t i = 0; i < y.data.size(); ++i) y.data[i] = any_number<N>(seed, i);
  return y;
}

template <class N>
Part<N> apply(const Sinusoids& op, const OpAt<N>& at) {
  constexpr std::uint64_t kSeed = 0x5109;
  const mapping::ModelConfig& config = at.model.config;
  const i64 size = at.model.size(op.size);
  if (size % 2 != 0) {
    throw Error(ErrorCode::kUnsupported, "sines and cosines need an even number of features");
  }
  const i64 half = size / 2;
  const double base = mapping::value_of(op.base, config);
  const double offset = mapping::value_of(op.offset, config);
  const auto steps = static_cast<double>(std::max<i64>(1, op.reaches_base ? half - 1 : half));
  Part<N> y = empty_part<N>(AxisMap::identity(size), at.inputs.rows());
  for (i64 t = 0; t < at.inputs.rows(); ++t) {
    const i64 position = t % at.inputs.length;
    for (i64 i = 0; i < half; ++i) {
      if constexpr (is_field<N>) {
        const auto place = static_cast<std::uint64_t>(2 * (position * half + i));
        y.row(t)[i] = kernels::field_random(kSeed, place);
        y.row(t)[half + i] = kernels::field_random(kSeed, place + 1);
      } else {
        const double angle = (static_cast<double>(position) + offset) *
                             std::pow(base, -static_cast<double>(i) / steps);
        y.row(t)[i] = static_cast<N>(std::sin(angle));
        y.row(t)[half + i] = static_cast<N>(std::cos(angle));
      }
    }
  }
  return y;
}

template <class N>
Part<N> apply(const ConvolveFrames& op, const OpAt<N>& at) {
  const ModelSizes& model = at.model;
  const i64 rows = model.size(op.rows), frames = model.size(op.frames);
  const i64 stride = model.size(op.stride);
  const Frames<N> x(*at.in[0], at.inputs.length, frames, model.size(op.taps), stride);
  const StoredWeight w = at.weights.read(at.op.weights[0].front(), at.rank);
  const i64 made = frames / stride;
  Part<N> y = empty_part<N>(AxisMap::identity(made * rows), at.inputs.rows());
  const RowView<N> of_frames{y.data.data(), at.inputs.rows() * made, rows};
  const i64 width = x.rows().stride;
  multiply_rows<N>({w.dtype, w.bytes.data(), rows, width, width}, at.inputs.map, x.rows(),
                   of_frames);
  if (at.op.weights.size() == 1 || at.op.weights[1].empty()) return y;
  const std::vector<N> bias = load_vector(at, at.op.weights[1].front(), AxisMap::identity(rows));
  for (i64 f = 0; f < of_frames.count; ++f) {
    for (i64 r = 0; r < rows; ++r) of_frames.row(f)[r] += bias[static_cast<size_t>(r)];
  }
  return y;
}

SHARDTOOL_BODY(ExtraInput)
SHARDTOOL_BODY(Sinusoids)
SHARDTOOL_BODY(ConvolveFrames)

}  // namespace shardtool::ops
