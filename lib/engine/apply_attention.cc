#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "shardtool/base/error.h"
#include "shardtool/engine/apply.h"
#include "shardtool/engine/numbers.h"
#include "shardtool/engine/rope_frequencies.h"
#include "shardtool/kernels/ops/attend.h"
#include "shardtool/kernels/ops/rotate.h"
#include "shardtool/model/window.h"

namespace shardtool::engine {
namespace {

using index::AxisMap;

/// Cosines and sines of every position, row p of the pairs at p * pairs.
template <class N>
struct Angles {
  i64 pairs = 0;
  std::vector<N> cos, sin;
};

/// Of residues: any numbers, the same on both sides.
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
Angles<N> real_angles(const RopeFrequencies& frequencies, i64 length) {
  Angles<N> angles{std::ssize(frequencies.inverse), {}, {}};
  for (i64 p = 0; p < length; ++p) {
    for (const double inverse : frequencies.inverse) {
      const double angle = static_cast<double>(p) * inverse;
      angles.cos.push_back(static_cast<N>(std::cos(angle) * frequencies.attention_factor));
      angles.sin.push_back(static_cast<N>(std::sin(angle) * frequencies.attention_factor));
    }
  }
  return angles;
}

template <class N>
Angles<N> angles_of(const model::Rope& op, i64 head, const OpAt<N>& at) {
  const double fraction = model::value_of(op.fraction, at.side.model->config);
  const i64 turned = static_cast<i64>(static_cast<double>(head) * fraction) / 2 * 2;
  if constexpr (is_field<N>) {
    return random_angles(turned / 2, at.inputs.length);
  } else {
    const double theta = model::value_of(op.theta, at.side.model->config);
    return real_angles<N>(
        rope_frequencies(at.side.model->config, op.scaling, turned, theta, at.inputs.length),
        at.inputs.length);
  }
}

kernels::RotaryPairs pairs_of(model::Rope::Style style) {
  switch (style) {
    case model::Rope::Style::kInterleaved:
      return kernels::RotaryPairs::kInterleaved;
    case model::Rope::Style::kDeinterleavedHalf:
      return kernels::RotaryPairs::kDeinterleavedHalf;
    case model::Rope::Style::kHalf:
      break;
  }
  return kernels::RotaryPairs::kHalf;
}

/// One attention on one device: the heads that it has, and where each finds its keys.
template <class N>
class AttentionAt {
 public:
  AttentionAt(const model::Attention& op, const OpAt<N>& at)
      : at_(at),
        op_(op),
        key_dim_(size(op.key_dim)),
        value_dim_(size(op.value_dim)),
        heads_(units_of(at.in[0]->features, key_dim_, at.op.op->in[0])),
        keys_(index::inverse(units_of(at.in[1]->features, key_dim_, at.op.op->in[1]))),
        values_(index::inverse(units_of(at.in[2]->features, value_dim_, at.op.op->in[2]))) {
    spec_.scale = number_of<N>(scale());
    spec_.softcap = number_of<N>(model::value_of(op.softcap, at.side.model->config));
    if (!at.op.weights.empty() && !at.op.weights[0].empty()) {
      sinks_ = load_vector(at, at.op.weights[0].front(), heads_);
    }
    window_ = model::window_of(op, at.side.model->config, at.layer);
    const i64 most = at.inputs.most_window;
    if (window_ && most > 0) window_ = std::min(*window_, most);
  }

  Part<N> run() {
    Part<N> y = empty_part<N>(index::scale(heads_, value_dim_), at_.inputs.rows());
    for (i64 h = 0; h < heads_.local_size(); ++h) {
      const auto global = heads_(h);
      if (global) run_head(h, *global, y);
    }
    return y;
  }

 private:
  i64 size(const model::Dim& dim) const { return at_.side.model->size(dim); }

  double scale() const {
    double scale = model::value_of(op_.scale, at_.side.model->config);
    if (op_.scale_of) scale /= std::sqrt(static_cast<double>(size(*op_.scale_of)));
    if (op_.yarn_scale) scale *= yarn_score_factor(at_.side.model->config);
    return scale;
  }

  i64 first_seen(i64 position) const {
    if (!window_) return 0;
    const bool is_chunked = op_.window->kind == model::Window::Kind::kChunked;
    return is_chunked ? position / *window_ * *window_ : std::max<i64>(0, position + 1 - *window_);
  }

  double slope(i64 head) const {
    if (op_.alibi == model::Alibi::kNone) return 0;
    const double slope = kernels::alibi_slope(head, size(op_.heads));
    return op_.alibi == model::Alibi::kBeforeScale ? slope * scale() : slope;
  }

  i64 local(const AxisMap& heads, i64 kv_head, size_t operand) const {
    const auto found = kv_head < heads.local_size() ? heads(kv_head) : std::nullopt;
    if (found) return *found;
    throw Error(ErrorCode::kUnsupported,
                fmt::format("device {} has query heads but not their head {} of '{}'", at_.rank,
                            kv_head, at_.op.op->in[operand]));
  }

  void run_head(i64 h, i64 global, Part<N>& y) {
    const i64 kv_head = global / (size(op_.heads) / size(op_.kv_heads));
    const i64 key = local(keys_, kv_head, 1);
    const i64 value = local(values_, kv_head, 2);
    kernels::ScoreSpec<N> spec = spec_;
    spec.slope = number_of<N>(slope(global));
    if (!sinks_.empty()) spec.sink = &sinks_[static_cast<size_t>(h)];
    std::vector<N> scores(static_cast<size_t>(at_.inputs.length));
    for (i64 s = 0; s < at_.inputs.sequences; ++s) {
      const i64 first = s * at_.inputs.length;
      const kernels::HeadRows<N> keys{at_.in[1]->row(first) + key * key_dim_, at_.in[1]->width(),
                                      key_dim_};
      const kernels::HeadRows<N> values{at_.in[2]->row(first) + value * value_dim_,
                                        at_.in[2]->width(), value_dim_};
      for (i64 t = 0; t < at_.inputs.length; ++t) {
        const i64 end = op_.causal ? t + 1 : at_.inputs.length;
        attend(spec, at_.in[0]->row(first + t) + h * key_dim_, keys, values, first_seen(t), end,
               scores.data(), y.row(first + t) + h * value_dim_);
      }
    }
  }

  const OpAt<N>& at_;
  const model::Attention& op_;
  i64 key_dim_, value_dim_;
  AxisMap heads_, keys_, values_;
  kernels::ScoreSpec<N> spec_;
  std::vector<N> sinks_;
  std::optional<i64> window_;
};

}  // namespace

template <class N>
Part<N> apply(const model::Rope& op, const OpAt<N>& at) {
  const i64 head = at.side.model->size(op.head);
  const Angles<N> angles = angles_of(op, head, at);
  const Part<N>& x = *at.in[0];
  Part<N> y = empty_part<N>(x.features, at.inputs.rows());
  for (i64 t = 0; t < at.inputs.rows(); ++t) {
    const i64 angle = t % at.inputs.length * angles.pairs;
    for (i64 begin = 0; begin + head <= x.width(); begin += head) {
      rotate(pairs_of(op.style), x.row(t) + begin, head, angles.cos.data() + angle,
             angles.sin.data() + angle, angles.pairs, y.row(t) + begin);
    }
  }
  return y;
}

template <class N>
Part<N> apply(const model::Attention& op, const OpAt<N>& at) {
  return AttentionAt<N>(op, at).run();
}

#define SHARDTOOL_INSTANTIATE(N)                              \
  template Part<N> apply(const model::Rope&, const OpAt<N>&); \
  template Part<N> apply(const model::Attention&, const OpAt<N>&);
SHARDTOOL_INSTANTIATE(Field)
SHARDTOOL_INSTANTIATE(double)
SHARDTOOL_INSTANTIATE(float)
#undef SHARDTOOL_INSTANTIATE

}  // namespace shardtool::engine
