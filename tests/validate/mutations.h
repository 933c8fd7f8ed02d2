#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/api/validate.h"
#include "tests/validate/shard_set.h"

/// The mutation matrix: what can be wrong with the shards of a model, and what `validate` says.
namespace shardtool::test {

/// The verdicts of V0 (headers), V1 (field), V2 (f64), and of all together; and those of V3 in f32
/// and bf16, which are told and decide nothing.
struct Signals {
  std::string v0, v1, v2, all;
  std::string f32, bf16;
};

const Signals kFunction{"pass", "fail", "fail", "fail", "differs", "differs"};
/// The field alone sees it: no logit of the f64 run depends on it.
const Signals kFieldAlone{"pass", "fail", "pass", "fail", "pass", "pass"};
/// Rounding alone depends on it: the softmax forgets a constant of its query.
const Signals kFieldAndRounding{"pass", "fail", "pass", "fail", "differs", "differs"};
const Signals kHeaders{"fail", "not run", "not run", "fail", "not run", "not run"};
const Signals kHeadersAndFunction{"fail", "fail", "fail", "fail", "differs", "differs"};
const Signals kBenign{"pass", "pass", "pass", "pass", "pass", "pass"};
/// The same function by sums in another order, of which bf16 keeps nothing.
const Signals kReordered{"pass", "pass", "pass", "pass", "differs", "pass"};

struct Mutation {
  std::string number;  ///< of the specification; benign ones and our own have a letter
  std::string what;
  std::string model;  ///< a name that model_folder knows
  std::string mesh;
  Signals signals;
  std::vector<std::string> words;  ///< that the report has, in the diagnosis of its first fault
  std::function<void(const ShardSet&)> apply;
  std::function<void(api::ValidateOptions&)> options = {};
};

/// A row of shards over tp=2.
Mutation over_two(std::string number, std::string what, std::string model,
                  std::vector<std::string> words, std::function<void(const ShardSet&)> apply,
                  const Signals& signals = kFunction);

/// A weight that many rows change.
const std::string kUp = "model.layers.2.mlp.up_proj.weight";

/// The folder of a model: one that is made, or a golden fixture's by its family.
std::string model_folder(const std::string& name);
/// Every golden fixture and the models with parts that none of them has.
const std::vector<std::string>& every_model();
/// A fresh copy of its split over the mesh.
std::string split_copy(const std::string& model, const std::string& mesh, const TempFolder& folder);

/// Faults of the specification's rows 01 to 42.
std::vector<Mutation> attention_mutations();
std::vector<Mutation> feed_forward_mutations();
std::vector<Mutation> value_mutations();
/// Rows 43 to 75.
std::vector<Mutation> header_mutations();
std::vector<Mutation> family_mutations();
/// Of convolutions and recurrences; the numbers are ours.
std::vector<Mutation> recurrence_mutations();
std::vector<Mutation> tower_mutations();
/// Of encoders and of attention to them; the numbers are ours.
std::vector<Mutation> encoder_mutations();
/// Of groups of heads that keep queries, keys and values together; the numbers are ours.
std::vector<Mutation> fused_mutations();
/// Of what the families have that came last; the numbers are ours.
std::vector<Mutation> later_mutations();
/// What must pass.
std::vector<Mutation> benign_mutations();

/// Rows that no shards of ours can have, and why.
struct Untested {
  std::string number;
  std::string what;
  std::string reason;
};
std::vector<Untested> untested_mutations();

}  // namespace shardtool::test
