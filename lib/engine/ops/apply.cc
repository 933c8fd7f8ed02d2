#include "lib/engine/ops/apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "kernels/ops/works.h"
#include "kernels/ops/xielu.h"
#include "lib/base/error.h"
#include "lib/engine/run/numbers.h"

namespace shardtool::engine {
namespace {

using index::AxisMap;

/// Every feature `times` times.
template <class N>
Part<N> repeated(const Part<N>& x, i64 times, i64 rows) {
  Part<N> y = empty_part<N>(index::scale(x.features, times), rows);
  for (i64 t = 0; t < rows; ++t) {
    for (i64 f = 0; f < y.width(); ++f) y.row(t)[f] = x.row(t)[f / times];
  }
  return y;
}

/// The features that an elementwise op works on, as many as the widest operand has: those of the
/// one that has fewest.
template <class N>
AxisMap common_features(const OpAt<N>& at) {
  i64 width = 0;
  for (const Part<N>* part : at.in) width = std::max(width, part->features.global_size());
  std::optional<AxisMap> best;
  for (const Part<N>* part : at.in) {
    AxisMap features = index::scale(part->features, width / part->features.global_size());
    if (!best || is_narrower(*best, features)) best = std::move(features);
  }
  return *best;
}

/// Combines the operands feature by feature; one of fewer features has each for several.
template <class N, class Combine>
Part<N> elementwise(const OpAt<N>& at, const Combine& combine) {
  const AxisMap features = common_features(at);
  const i64 rows = at.inputs.rows();
  Part<N> y = empty_part<N>(features, rows);
  for (size_t i = 0; i < at.in.size(); ++i) {
    const Part<N>& x = *at.in[i];
    const i64 times = features.global_size() / x.features.global_size();
    const std::string& name = at.op.op->in[i];
    const Part<N> operand = times == 1 ? aligned(x, features, rows, name)
                                       : aligned(repeated(x, times, rows), features, rows, name);
    for (i64 t = 0; t < rows; ++t) {
      for (i64 f = 0; f < y.width(); ++f) {
        const N number = operand.row(t)[f];
        y.row(t)[f] = i == 0 ? number : combine(y.row(t)[f], number);
      }
    }
  }
  return y;
}

template <class N, class Function>
Part<N> each(const OpAt<N>& at, const Function& function) {
  Part<N> y = *at.in[0];
  for (N& x : y.data) x = function(x);
  return y;
}

/// Times the op's weight, which has a number for each of these stretches of features.
template <class N>
void multiply_sections(const OpAt<N>& at, const std::vector<model::Dim>& sections, Part<N>& y) {
  const auto factors =
      load_vector(at, at.op.weights.front().front(), AxisMap::identity(std::ssize(sections)));
  i64 begin = 0;
  for (size_t i = 0; i < sections.size(); ++i) {
    const i64 end = begin + at.side.model->size(sections[i]);
    for (const index::Piece& piece : y.features.pieces()) {
      const i64 first = std::max(begin, piece.global);
      const i64 last = std::min(end, piece.global_end());
      for (i64 t = 0; t < at.inputs.rows(); ++t) {
        N* const row = y.row(t) + piece.local - piece.global;
        for (i64 f = first; f < last; ++f) row[f] *= factors[i];
      }
    }
    begin = end;
  }
}

/// Times the op's weight: its one number, or one for every so many features.
template <class N>
void multiply_by_stored(const OpAt<N>& at, i64 size, Part<N>& y) {
  const bool is_single = size == 1;
  const i64 shared = y.features.global_size() / size;
  const AxisMap units =
      is_single ? AxisMap::identity(1) : units_of(y.features, shared, at.op.op->in.front());
  const std::vector<N> factors = load_vector(at, at.op.weights.front().front(), units);
  for (i64 t = 0; t < at.inputs.rows(); ++t) {
    for (i64 f = 0; f < y.width(); ++f)
      y.row(t)[f] *= factors[static_cast<size_t>(is_single ? 0 : f / shared)];
  }
}

/// The inputs one after the other.
template <class N>
Part<N> side_by_side(const OpAt<N>& at) {
  std::vector<AxisMap> sections;
  for (const Part<N>* part : at.in) sections.push_back(part->features);
  Part<N> y = empty_part<N>(index::concat(sections), at.inputs.rows());
  for (i64 t = 0; t < at.inputs.rows(); ++t) {
    N* to = y.row(t);
    for (const Part<N>* part : at.in) to = std::copy_n(part->row(t), part->width(), to);
  }
  return y;
}

/// Numbers of which every head has a tensor, of the heads that the device has.
template <class N>
std::vector<N> vectors_of_heads(const OpAt<N>& at, const model::BoundWeight& tensors, i64 size) {
  const AxisMap heads = units_of(at.in[0]->features, size, at.op.op->in[0]);
  std::vector<N> all(static_cast<size_t>(heads.local_size() * size));
  for (const index::Piece& piece : heads.pieces()) {
    for (i64 i = 0; i < piece.size; ++i) {
      const size_t tensor = tensors[static_cast<size_t>(piece.global + i)];
      const std::vector<N> head = load_vector(at, tensor, AxisMap::identity(size));
      std::copy(head.begin(), head.end(), all.begin() + (piece.local + i) * size);
    }
  }
  return all;
}

/// A norm's weight or bias: one number per feature that the device has, or per feature of a head
/// where all share them; empty where there is none.
template <class N>
std::vector<N> norm_weight(const model::Norm& op, const OpAt<N>& at, size_t which) {
  if (at.op.weights.size() <= which || at.op.weights[which].empty()) return {};
  const size_t tensor = at.op.weights[which].front();
  const AxisMap& features = at.in[0]->features;
  if (!op.per_head) return load_vector(at, tensor, features);
  const i64 size = at.side.model->size(op.size);
  if (!op.heads) return load_vector(at, tensor, AxisMap::identity(size));
  if (at.op.op->weights[which].heads) return vectors_of_heads(at, at.op.weights[which], size);
  return load_rows(at, which, units_of(features, size, at.op.op->in[0]), size);
}

}  // namespace

bool is_narrower(const AxisMap& one, const AxisMap& other) {
  return other.global_size() == one.global_size() && other.image_size() < one.image_size();
}

kernels::ActivationKind activation_of(const model::Word& word, const mapping::ModelConfig& config) {
  std::string name = word.value;
  if (!word.config.empty()) name = config.text(word.config).value_or(word.value);
  if (const auto kind = kernels::parse_activation(name)) return *kind;
  throw Error(ErrorCode::kUnsupported, fmt::format("the activation '{}' is not known", name));
}

StoredWeight read_small(const Side& side, size_t tensor, i64 rank) {
  if (side.is_turned(tensor)) {
    throw Error(ErrorCode::kUnsupported,
                "a packed weight is used for something else than a product")
        .tensor(side.tensors[tensor].name);
  }
  StoredWeight weight{side.region(tensor, rank), side.tensors[tensor].dtype, {}};
  const Shape shape = index::local_shape(weight.region);
  weight.bytes.resize(static_cast<size_t>(byte_size(weight.dtype, shape).value()));
  side.weights->read({tensor, rank, -1, 0, shape.empty() ? 1 : shape[0]}, weight.bytes);
  return weight;
}

template <class N>
SmallWeight<N> load_small(const Side& side, kernels::NumberMap map, size_t tensor, i64 rank) {
  StoredWeight stored = read_small(side, tensor, rank);
  const i64 count = std::ssize(stored.bytes) * 8 / bits(stored.dtype);
  SmallWeight<N> weight{std::move(stored.region), std::vector<N>(static_cast<size_t>(count))};
  to_numbers(stored.dtype, map, stored.bytes.data(), count, weight.data.data());
  return weight;
}

template <class N>
std::vector<N> load_vector(const OpAt<N>& at, size_t tensor, const AxisMap& features) {
  auto weight = load_small<N>(at.side, at.inputs.map, tensor, at.rank);
  const Part<N> stored{weight.region.back(), std::move(weight.data)};
  return aligned(stored, features, 1, at.side.tensors[tensor].name).data;
}

template <class N>
std::vector<N> load_rows(const OpAt<N>& at, size_t weight, const AxisMap& features, i64 unit) {
  const size_t tensor = at.op.weights[weight].front();
  const size_t axis = model::features_axis(at.op.op->weights[weight]);
  auto stored = load_small<N>(at.side, at.inputs.map, tensor, at.rank);
  const Part<N> rows{index::scale(stored.region.at(axis), unit), std::move(stored.data)};
  return aligned(rows, index::scale(features, unit), 1, at.side.tensors[tensor].name).data;
}

template <class N>
std::vector<Part<N>> apply(const model::Split& op, const OpAt<N>& at) {
  std::vector<i64> sizes;
  for (const model::Dim& section : op.sections) sizes.push_back(at.side.model->size(section));
  const Part<N>& x = *at.in[0];
  std::vector<Part<N>> parts;
  for (Section& section : sections_of(op.order, x.features, sizes, at.op.op->in[0])) {
    Part<N> y = empty_part<N>(std::move(section.features), at.inputs.rows());
    for (i64 t = 0; t < at.inputs.rows(); ++t) {
      for (size_t i = 0; i < section.from.size(); ++i) y.row(t)[i] = x.row(t)[section.from[i]];
    }
    parts.push_back(std::move(y));
  }
  return parts;
}

template <class N>
Part<N> apply(const model::Join& op, const OpAt<N>& at) {
  if (op.order == model::Join::Order::kConcat) return side_by_side(at);
  std::vector<i64> sizes;
  i64 per_head = 0;
  for (const model::Dim& section : op.sections) {
    sizes.push_back(at.side.model->size(section));
    per_head += sizes.back();
  }
  const AxisMap heads = units_of(at.in[0]->features, sizes[0], at.op.op->in[0]);
  Part<N> y = empty_part<N>(index::scale(heads, per_head), at.inputs.rows());
  i64 begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool is_shared = at.in[i]->features.global_size() == sizes[i];
    const Part<N> x = is_shared ? *at.in[i]
                                : aligned(*at.in[i], index::scale(heads, sizes[i]),
                                          at.inputs.rows(), at.op.op->in[i]);
    for (i64 t = 0; t < at.inputs.rows(); ++t) {
      for (i64 h = 0; h < heads.local_size(); ++h) {
        const N* from = x.row(t) + (is_shared ? 0 : h * sizes[i]);
        std::copy_n(from, sizes[i], y.row(t) + h * per_head + begin);
      }
    }
    begin += sizes[i];
  }
  return y;
}

template <class N>
Part<N> apply(const model::Norm& op, const OpAt<N>& at) {
  const model::Model& model = *at.side.model;
  const kernels::NormSpec spec{op.kind, mapping::value_of(op.eps, model.config),
                               op.one_plus_weight};
  const Part<N>& x = *at.in[0];
  const i64 size = model.size(op.size);
  const auto weight = norm_weight(op, at, 0);
  const auto bias = norm_weight(op, at, 1);
  const auto at_head = [](const N* there, const std::vector<N>& all, i64 begin) {
    return there == nullptr ? nullptr : there + begin % std::ssize(all);
  };
  Part<N> y = empty_part<N>(x.features, at.inputs.rows());
  const i64 n = op.per_head ? size : x.features.local_size();
  const i64 rows = at.inputs.rows();
  const N* const from = at.bench.in(x.data);
  const N* const factors = weight.empty() ? nullptr : at.bench.in(weight);
  const N* const summands = bias.empty() ? nullptr : at.bench.in(bias);
  N* const to = at.bench.in_out(y.data);
  for (i64 begin = 0; begin + n <= x.width() && n > 0; begin += n) {
    at.bench.run(kernels::NormRows<N>{spec,
                                      {from + begin, rows, x.width()},
                                      n,
                                      at_head(factors, weight, begin),
                                      at_head(summands, bias, begin),
                                      {to + begin, rows, y.width()}});
  }
  at.bench.finish();
  return y;
}

template <class N>
Part<N> apply(const model::Activation& op, const OpAt<N>& at) {
  const auto kind = activation_of(op.kind, at.side.model->config);
  const Part<N>& x = *at.in[0];
  Part<N> y = empty_part<N>(x.features, at.inputs.rows());
  at.bench.run(kernels::ActivateAll<N>{kind, at.bench.in(x.data), nullptr, std::ssize(x.data),
                                       at.bench.out(y.data)});
  at.bench.finish();
  return y;
}

template <class N>
Part<N> apply(const model::Xielu&, const OpAt<N>& at) {
  const auto number = [&at](size_t which) {
    return load_small<N>(at.side, at.inputs.map, at.op.weights[which].front(), at.rank).data[0];
  };
  const kernels::XieluSpec<N> spec{number(0), number(1), number(2), number(3)};
  return each(at, [&spec](N x) { return kernels::xielu(spec, x); });
}

template <class N>
Part<N> apply(const model::Multiply&, const OpAt<N>& at) {
  return elementwise(at, [](N a, N b) { return a * b; });
}

template <class N>
Part<N> apply(const model::Add&, const OpAt<N>& at) {
  return elementwise(at, [](N a, N b) { return a + b; });
}

template <class N>
Part<N> apply(const model::Scale& op, const OpAt<N>& at) {
  const double number = mapping::value_of(op.by, at.side.model->config);
  const double by = op.by_sqrt ? std::sqrt(number) : number;
  const N factor = number_of<N>(op.divides ? 1 / by : by);
  Part<N> y = each(at, [factor](N x) { return x * factor; });
  if (!op.sections.empty()) {
    multiply_sections(at, op.sections, y);
  } else if (op.size) {
    multiply_by_stored(at, at.side.model->size(*op.size), y);
  }
  return y;
}

template <class N>
Part<N> apply(const model::Temper& op, const OpAt<N>& at) {
  const double strength = mapping::value_of(op.strength, at.side.model->config);
  const double span = mapping::value_of(op.span, at.side.model->config);
  const double first = mapping::value_of(op.first, at.side.model->config);
  Part<N> y = *at.in[0];
  for (i64 t = 0; t < at.inputs.rows(); ++t) {
    const double spans = std::floor((static_cast<double>(t % at.inputs.length) + first) / span);
    const N factor = number_of<N>(1 + strength * std::log1p(spans));
    for (i64 f = 0; f < y.width(); ++f) y.row(t)[f] *= factor;
  }
  return y;
}

template <class N>
Part<N> apply(const model::Clamp& op, const OpAt<N>& at) {
  const double limit = mapping::value_of(op.limit, at.side.model->config);
  if (limit == 0) return *at.in[0];
  if (op.from_above) return each(at, [limit](N x) { return at_most(limit, x); });
  return each(at, [limit](N x) { return limited(limit, x); });
}

template <class N>
Part<N> apply(const model::Softcap& op, const OpAt<N>& at) {
  const double cap = mapping::value_of(op.cap, at.side.model->config);
  if (cap == 0) return *at.in[0];
  return each(at, [cap](N x) { return capped(cap, x); });
}

#define SHARDTOOL_INSTANTIATE(N)                                                    \
  template SmallWeight<N> load_small(const Side&, kernels::NumberMap, size_t, i64); \
  template std::vector<N> load_vector(const OpAt<N>&, size_t, const AxisMap&);      \
  template std::vector<N> load_rows(const OpAt<N>&, size_t, const AxisMap&, i64);   \
  template std::vector<Part<N>> apply(const model::Split&, const OpAt<N>&);         \
  template Part<N> apply(const model::Join&, const OpAt<N>&);                       \
  template Part<N> apply(const model::Norm&, const OpAt<N>&);                       \
  template Part<N> apply(const model::Activation&, const OpAt<N>&);                 \
  template Part<N> apply(const model::Xielu&, const OpAt<N>&);                      \
  template Part<N> apply(const model::Multiply&, const OpAt<N>&);                   \
  template Part<N> apply(const model::Add&, const OpAt<N>&);                        \
  template Part<N> apply(const model::Scale&, const OpAt<N>&);                      \
  template Part<N> apply(const model::Temper&, const OpAt<N>&);                     \
  template Part<N> apply(const model::Clamp&, const OpAt<N>&);                      \
  template Part<N> apply(const model::Softcap&, const OpAt<N>&);
SHARDTOOL_INSTANTIATE(Field)
SHARDTOOL_INSTANTIATE(double)
SHARDTOOL_INSTANTIATE(float)
#undef SHARDTOOL_INSTANTIATE

}  // namespace shardtool::engine
