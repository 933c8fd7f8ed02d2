#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/mapping/resolve/resolution.h"

namespace shardtool::mapping {

/// A cut by a user's own rule that names, shapes or config.json contradict.
struct DoubtfulCut {
  std::string tensor;  ///< the first with this form of name
  i64 tensors = 0;     ///< all with this form
  std::string rule;
  Place place;          ///< of the rule
  std::string message;  ///< one sentence with the name
  std::string fix;      ///< the rule to write, or a value to correct
};

/// Finds cuts that no preset decides and that look wrong: a tensor of q, k and v, k and v, or gate
/// and up (by name, or because it has two or three times the rows that the tensors beside it take)
/// cut as one piece; heads of another number than config.json or the tensors beside it have; and
/// cuts inside a head. `config` may be null.
std::vector<DoubtfulCut> doubtful_cuts(const Resolution& resolution,
                                       std::span<const TensorSpec> tensors,
                                       const ModelConfig* config);

/// Joins message and fix: "MESSAGE; FIX".
std::string to_string(const DoubtfulCut& cut);

}  // namespace shardtool::mapping
