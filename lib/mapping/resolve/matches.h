#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/base/tensor_spec.h"
#include "lib/mapping/document/config.h"
#include "lib/mapping/mapping.h"
#include "lib/mapping/match/assignment.h"
#include "lib/mapping/match/companions.h"
#include "lib/mapping/match/packed_weights.h"
#include "lib/mapping/match/rule_matcher.h"
#include "lib/mapping/resolve/axis_table.h"
#include "lib/mapping/resolve/index_numbers.h"

namespace shardtool::mapping {

/// A tensor's number on an index axis. The name is that of a rule.
struct IndexNumber {
  const std::string* axis = nullptr;
  i64 value = 0;
  std::vector<i64> others = {};  ///< further numbers of the same tensor
};

/// Contents of the names of tensors under a mapping, whatever the mesh. Points into the mapping,
/// the tensors and the config, which must outlive it.
class Matches {
 public:
  /// Throws the errors of packed_weights, assign and leave_out_last_codes; those about one tensor
  /// go to `report`, if set. Of `axes` only declared sizes are used.
  Matches(const Mapping& mapping, std::span<const TensorSpec> tensors, const ModelConfig* config,
          const CompanionSizes& sizes, AxisTable& axes, const ErrorSink& report);
  Matches(const Matches&) = delete;
  Matches& operator=(const Matches&) = delete;

  /// Reads the numbers in names that rules give to index axes; later calls do nothing. Throws
  /// kUnknownName and the errors of RuleMatcher::captures.
  void read_numbers(const AxisTable& axes);

  size_t stored() const { return stored_; }  ///< number of tensors in the checkpoint
  /// The checkpoint's tensors, then the packed weights.
  std::span<const TensorSpec> tensors() const { return tensors_; }
  const TensorIndex& by_name() const { return by_name_; }
  const RuleMatcher& rules() const { return rules_; }
  const Companions& companions() const { return companions_; }
  const std::vector<Assignment>& assigned() const { return assigned_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  const IndexNumbers& numbers() const { return numbers_; }
  /// A tensor's numbers, in the order of its rule's index axes.
  const std::vector<IndexNumber>& numbers_of(size_t tensor) const { return numbers_of_[tensor]; }

 private:
  RuleMatcher rules_;
  Companions companions_;
  size_t stored_;
  std::vector<PackedSpec> packed_;
  std::vector<TensorSpec> with_packed_;  ///< all tensors; empty without packed weights
  std::span<const TensorSpec> tensors_;
  TensorIndex by_name_;
  std::vector<std::string> warnings_;
  std::vector<Assignment> assigned_;
  IndexNumbers numbers_;
  std::vector<std::vector<IndexNumber>> numbers_of_;  ///< by tensor; empty until they are read
};

}  // namespace shardtool::mapping
