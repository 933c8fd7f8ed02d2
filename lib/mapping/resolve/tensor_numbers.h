#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/layout/layout.h"
#include "lib/mapping/resolve/axis_table.h"
#include "lib/mapping/resolve/matches.h"

namespace shardtool::mapping {

/// Places tensors on devices by the numbers in their names, such as layer and expert, or in the
/// "at" of their rules. Each number is an index of a logical axis, the index axis. Considers only
/// index axes that are cut over the mesh.
class TensorNumbers {
 public:
  /// `numbers` and `axes` must outlive it.
  TensorNumbers(const IndexNumbers& numbers, AxisTable& axes) : numbers_(numbers), axes_(axes) {}

  /// Collects the numbers of every tensor; `matches` must have read them. Throws kAssertion for a
  /// missing or repeated number, and kUnknownName or kShapeMismatch for an "at" outside of its
  /// axis.
  void read(const Matches& matches);

  /// Returns the tensor's numbers on index axes that are cut.
  const std::vector<IndexNumber>& of(size_t tensor) const { return of_[tensor]; }
  /// Returns the index axes of the tensor with its numbers, and adds their cuts to `units`. Throws
  /// kShapeMismatch for a number outside of its axis, and the errors of AxisTable::cut.
  std::vector<layout::IndexAxis> axes_of(size_t tensor, const Rule& rule,
                                         std::vector<UnitCut>& units);
  /// Returns the tensor's homes: for each of its numbers, the first number of that axis on the same
  /// devices. Tensors of one rule and shape with equal homes have equal layouts.
  std::vector<i64> homes_of(size_t tensor);

 private:
  void place_at(size_t tensor, const Rule& rule, const std::string& name);
  std::map<i64, i64> homes_on(const std::string& axis);

  const IndexNumbers& numbers_;
  AxisTable& axes_;
  std::vector<std::vector<IndexNumber>> of_;         ///< by tensor
  std::map<std::string, std::map<i64, i64>> homes_;  ///< by index axis and number
};

}  // namespace shardtool::mapping
