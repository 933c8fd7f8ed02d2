#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/model/bind.h"
#include "lib/model/flow/flow.h"
#include "lib/plan/placement/program.h"

namespace shardtool::model {

/// The tokens of one pass of a replica.
struct PassTokens {
  i64 batch = 1;       ///< sequences
  i64 prompt_len = 1;  ///< tokens per sequence; after an encoder, of the encoder alone
  Dtype activations = Dtype::kBF16;
};

/// A layer as a program of the planner of ops (plan/placement/program.h).
///
/// Values have the axes [batch, tokens, features]; those that are equal for every sequence or token
/// have extent 1 there. Weights have their stored axes, after an axis of experts or heads if these
/// are tensors of their own. The rules are those of the ops (ops/rules.h), and each op also runs on
/// sequences of its own. An op that gathers its result (logits, a router) is two program ops.
struct LayerProgram {
  std::vector<size_t> layers;  ///< indices into Model::layers; equal programs are one
  plan::Program program;
  std::vector<std::string> names;  ///< by program op: the names of its op's outputs in the graph
};

/// Axis of values along which sequences, tokens and features are cut.
inline constexpr int kBatchAxis = 0, kTokenAxis = 1, kFeatureAxis = 2;

/// Returns the distinct programs of the model's layers in order, without towers for images, which a
/// prompt may lack. After a causal model the head reads the last position of each sequence. Throws
/// kUnsupported for pipeline stages, and the errors of the ops' widths.
std::vector<LayerProgram> op_programs(const Model& model, std::span<const TensorSpec> tensors,
                                      const LayoutOf& layouts, const mesh::Mesh& mesh,
                                      const PassTokens& pass);

/// Returns the name of a stored tensor without the part that ends at its layer's number.
std::string name_in_layer(const std::string& tensor);

}  // namespace shardtool::model
