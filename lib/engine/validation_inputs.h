#pragma once

#include <span>
#include <vector>

#include "lib/engine/validation.h"
#include "lib/ops/run_inputs.h"

/// Inputs of the runs that `validate` compares.
namespace shardtool::engine {

/// Returns arbitrary tokens for the longest run; shorter runs use the first ones. Throws
/// kSizeExpression for a graph without the size of its vocabulary.
std::vector<i64> any_tokens(const Side& whole, const ValidationOptions& options);

Inputs field_inputs(std::span<const i64> tokens, const ValidationOptions& options);
Inputs real_inputs(std::span<const i64> tokens, const ValidationOptions& options);
/// Inputs of the native run, which computes as engines do. Requires `options.native`.
Inputs native_inputs(std::span<const i64> tokens, const ValidationOptions& options);
/// The same inputs with activations of another type.
Inputs with_activations(Inputs inputs, Dtype activations);

}  // namespace shardtool::engine
