#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/mapping/match/rule_matcher.h"
#include "lib/mapping/resolve/axis_table.h"

namespace shardtool::mapping {

/// The numbers in tensor names by logical axis, such as layers and experts.
class IndexNumbers {
 public:
  void add(const PlacedRule& rule, const std::string& axis, std::string_view name,
           const Capture& number);

  /// The declared size of the axis, else the largest number + 1, or 0 if there are no numbers.
  i64 size(const std::string& axis, AxisTable& axes) const;

  /// Checks numbers that follow another number in the name, such as the expert inside a layer. For
  /// each value of the outer number, every index of an axis with a declared size must occur exactly
  /// once. The outermost number may have gaps, because layers differ in kind. Throws kAssertion.
  void check_complete(AxisTable& axes) const;

  /// Returns a warning for each axis of outermost numbers with missing or too large numbers: "axis
  /// 'layers' has size 4, num_hidden_layers = 4 (from config.json), but no tensor has index 2, 3".
  /// Skips axes whose size config.json lacks.
  std::vector<std::string> gaps(AxisTable& axes) const;

 private:
  /// Names that differ only in the number.
  struct Family {
    std::string example;
    const PlacedRule* rule = nullptr;
    std::vector<i64> numbers;
  };

  std::map<std::string, i64> largest_;
  std::map<std::string, std::set<i64>> outer_;  ///< by axis, over all rules
  std::map<std::pair<std::string, std::string>, Family>
      nested_;  ///< by axis, then by name without its number
};

}  // namespace shardtool::mapping
