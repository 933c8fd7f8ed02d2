#include "lib/engine/validation_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "kernels/field/field.h"
#include "lib/base/error.h"

namespace shardtool::engine {
namespace {

/// Number of tokens in the field run. One token would do for linear ops. Attention needs more: a
/// query must meet a key of another position, with another rotation, and a window must exclude a
/// token.
constexpr i64 kFieldLength = 3;
constexpr i64 kFieldWindow = 2;
/// A sliding window of the f64 run is at most 1/2 of the tokens, so that it excludes some.
constexpr i64 kWindowShare = 2;

/// Number of tokens in the vocabulary.
std::uint64_t vocabulary_of(const model::Model& model) {
  const auto size = model.sizes.find("vocab");
  if (size != model.sizes.end() && size->second > 0) {
    return static_cast<std::uint64_t>(size->second);
  }
  throw Error(ErrorCode::kSizeExpression,
              fmt::format("the graph of {} has no size 'vocab', how many tokens there are",
                          model.graph->family));
}

}  // namespace

std::vector<i64> any_tokens(const Side& whole, const ValidationOptions& options) {
  const std::uint64_t vocabulary = vocabulary_of(*whole.model);
  std::vector<i64> tokens;
  const i64 count = options.with_f64 || options.with_ordered
                        ? std::max(options.length, kFieldLength)
                        : kFieldLength;
  for (i64 t = 0; t < count; ++t) {
    tokens.push_back(static_cast<i64>(kernels::hashed(options.seed, static_cast<std::uint64_t>(t)) %
                                      vocabulary));
  }
  return tokens;
}

Inputs field_inputs(std::span<const i64> tokens, const ValidationOptions& options) {
  Inputs inputs;
  inputs.length = kFieldLength;
  inputs.tokens.assign(tokens.begin(), tokens.begin() + kFieldLength);
  inputs.seed = options.seed;
  inputs.map = options.map;
  inputs.most_window = kFieldWindow;
  return inputs;
}

Inputs real_inputs(std::span<const i64> tokens, const ValidationOptions& options) {
  Inputs inputs;
  inputs.length = options.length;
  inputs.tokens.assign(tokens.begin(), tokens.begin() + options.length);
  inputs.most_window = std::max<i64>(1, options.length / kWindowShare);
  return inputs;
}

Inputs with_activations(Inputs inputs, Dtype activations) {
  inputs.activations = activations;
  return inputs;
}

Inputs native_inputs(std::span<const i64> tokens, const ValidationOptions& options) {
  Inputs inputs = with_activations(real_inputs(tokens, options), *options.native);
  inputs.uses_library = options.uses_library;
  return inputs;
}

}  // namespace shardtool::engine
