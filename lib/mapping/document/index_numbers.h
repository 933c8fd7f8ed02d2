#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/mapping/resolve/axis_table.h"
#include "lib/mapping/resolve/rule_matcher.h"

namespace shardtool::mapping {

/// The numbers that names put on logical axes: layers, experts.
class IndexNumbers {
 public:
  void add(const PlacedRule& rule, const std::string& axis, std::string_view name,
           const Capture& number);

  /// The size of the axis: as declared, or the largest number + 1, or 0 without any.
  i64 size(const std::string& axis, AxisTable& axes) const;

  /// A number below another number in the name (the expert inside a layer) runs over the whole
  /// axis: for each outer one, every index of an axis with a declared size stands exactly once.
  /// (The outermost number may have gaps: layers differ in kind.) Throws kAssertion.
  void check_complete(AxisTable& axes) const;

  /// A warning for each axis of outermost numbers of which some tensors have none, or which some
  /// exceed: "axis 'layers' has size 4, num_hidden_layers = 4 (from config.json), but no tensor
  /// has index 2, 3". Axes whose size config.json lacks have none.
  std::vector<std::string> gaps(AxisTable& axes) const;

 private:
  /// One family of names that differ in the number only.
  struct Family {
    std::string example;
    const PlacedRule* rule = nullptr;
    std::vector<i64> numbers;
  };

  std::map<std::string, i64> largest_;
  std::map<std::string, std::set<i64>> outer_;  ///< by axis, of all rules
  std::map<std::pair<std::string, std::string>, Family>
      nested_;  ///< by axis and name without number
};

}  // namespace shardtool::mapping
