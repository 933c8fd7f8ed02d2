#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/api/validate.h"
#include "tests/validate/shard_set.h"

/// The mutation matrix: faults in the shards of a model, and the expected report of `validate`.
namespace shardtool::test {

/// Expected verdicts of V0 (headers), V1 (field), V2 (f64), and of all together; then those of V3
/// in f32 and bf16, which do not affect the verdict.
struct Signals {
  std::string v0, v1, v2, all;
  std::string f32, bf16;
};

const Signals kFunction{"pass", "fail", "fail", "fail", "differs", "differs"};
/// Only the field run finds it: no logit of the f64 run depends on it.
const Signals kFieldAlone{"pass", "fail", "pass", "fail", "pass", "pass"};
/// In floats only rounding depends on it: the softmax cancels a constant of its query.
const Signals kFieldAndRounding{"pass", "fail", "pass", "fail", "differs", "differs"};
const Signals kHeaders{"fail", "not run", "not run", "fail", "not run", "not run"};
const Signals kHeadersAndFunction{"fail", "fail", "fail", "fail", "differs", "differs"};
const Signals kBenign{"pass", "pass", "pass", "pass", "pass", "pass"};
/// The same function with sums in another order; rounding to bf16 hides the difference.
const Signals kReordered{"pass", "pass", "pass", "pass", "differs", "pass"};

struct Mutation {
  std::string number;  ///< in the specification; benign rows and our own begin with a letter
  std::string what;
  std::string model;  ///< a name that model_folder knows
  std::string mesh;
  Signals signals;
  std::vector<std::string> words;  ///< expected in the diagnosis of the first fault
  std::function<void(const ShardSet&)> apply;
  std::function<void(api::ValidateOptions&)> options = {};
};

/// Makes a row for shards over the mesh.
Mutation over_mesh(std::string number, std::string what, std::string model, std::string mesh,
                   std::vector<std::string> words, std::function<void(const ShardSet&)> apply,
                   const Signals& signals = kFunction);
/// Makes a row for shards over tp=2.
Mutation over_two(std::string number, std::string what, std::string model,
                  std::vector<std::string> words, std::function<void(const ShardSet&)> apply,
                  const Signals& signals = kFunction);

/// A weight that many rows change, and beginnings of the names of others.
const std::string kUp = "model.layers.2.mlp.up_proj.weight";
const std::string kMlp = "model.layers.0.mlp.";
const std::string kO = "model.layers.0.self_attn.o_proj";

/// Returns the folder of a model: a generated one, or a golden model by its family.
std::string model_folder(const std::string& name);
/// Returns all golden models, and generated models with parts that no golden model has.
const std::vector<std::string>& every_model();
/// Returns a new copy of the model's split over the mesh.
std::string split_copy(const std::string& model, const std::string& mesh, const TempFolder& folder);

/// Rows 01 to 42 of the specification.
std::vector<Mutation> attention_mutations();
std::vector<Mutation> feed_forward_mutations();
std::vector<Mutation> value_mutations();
/// Rows 43 to 75 of the specification.
std::vector<Mutation> header_mutations();
std::vector<Mutation> family_mutations();
/// Faults of convolutions and recurrences. These rows are not in the specification.
std::vector<Mutation> recurrence_mutations();
std::vector<Mutation> tower_mutations();
/// Faults of encoders and of attention to them. Not in the specification.
std::vector<Mutation> encoder_mutations();
/// Faults of tensors that store queries, keys and values by groups of heads. Not in the
/// specification.
std::vector<Mutation> fused_mutations();
/// Faults of parts that few families have. Not in the specification.
std::vector<Mutation> rare_part_mutations();
/// Changes that must pass.
std::vector<Mutation> benign_mutations();

/// Rows of the specification that cannot occur with our shards, with the reason.
struct Untested {
  std::string number;
  std::string what;
  std::string reason;
};
std::vector<Untested> untested_mutations();

}  // namespace shardtool::test
