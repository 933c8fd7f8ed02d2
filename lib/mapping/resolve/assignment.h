#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/name_map.h"
#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/resolve/companions.h"
#include "lib/mapping/resolve/rule_matcher.h"

namespace shardtool::mapping {

/// Which part of the mapping decides a tensor.
struct Assignment {
  enum class Kind { kRule, kCompanion, kDropped, kUnknown };
  Kind kind = Kind::kUnknown;
  RuleMatch match;       ///< of kRule
  size_t companion = 0;  ///< of kCompanion: index into Companions::all
  size_t leader = 0;     ///< of kCompanion: the tensor that it follows, itself of kRule or kUnknown
};

/// Position of every tensor by name, of the last one where a packed weight has the name of its
/// stored part. Views into the specs.
using TensorIndex = NameViewMap<size_t>;
TensorIndex index_by_name(std::span<const TensorSpec> tensors);

/// Is told of an error about one tensor or rule, and may throw it.
using ErrorSink = std::function<void(Error)>;

/// What decides each tensor: "drop", then "companions" whose leader is there, then the rules.
/// Appends warnings. Throws kNoRule and kUnusedRule as "unknown" and "unused_rule" of the mapping
/// say, kAmbiguousRule, and kMappingSchema for the companion of a companion. With `report`, the
/// first three are told instead, and the tensors are left out.
std::vector<Assignment> assign(const Mapping& mapping, std::span<const TensorSpec> tensors,
                               const TensorIndex& by_name, const ModelConfig* config,
                               RuleMatcher& rules, Companions& companions,
                               std::vector<std::string>& warnings, const ErrorSink& report);

}  // namespace shardtool::mapping
