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
#include "lib/mapping/match/companions.h"
#include "lib/mapping/match/rule_matcher.h"

namespace shardtool::mapping {

/// The part of the mapping that decides a tensor's layout.
struct Assignment {
  enum class Kind { kRule, kCompanion, kDropped, kUnknown };
  Kind kind = Kind::kUnknown;
  RuleMatch match;       ///< only of kRule
  size_t companion = 0;  ///< only of kCompanion: index into Companions::all
  size_t leader = 0;     ///< only of kCompanion: its leader, which is kRule or kUnknown
};

/// Positions of tensors by name. If a packed weight has the same name as its stored part, it takes
/// precedence. The names are views into the specs.
using TensorIndex = NameViewMap<size_t>;
TensorIndex index_by_name(std::span<const TensorSpec> tensors);

/// Receives an error about one tensor or rule, and may throw it.
using ErrorSink = std::function<void(Error)>;

/// Assigns each tensor to "drop", else to a companion whose leader is present, else to a rule.
/// Appends warnings. Throws kAmbiguousRule; kNoRule and kUnusedRule, depending on "unknown" and
/// "unused_rule" of the mapping; and kMappingSchema if a companion's leader is a companion. If
/// `report` is set, it receives every error of the first three codes instead, and the tensors are
/// skipped.
std::vector<Assignment> assign(const Mapping& mapping, std::span<const TensorSpec> tensors,
                               const TensorIndex& by_name, const ModelConfig* config,
                               RuleMatcher& rules, Companions& companions,
                               std::vector<std::string>& warnings, const ErrorSink& report);

}  // namespace shardtool::mapping
