#include "lib/mapping/resolve/missing_numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace shardtool::mapping {

MissingNumbers missing_numbers(const std::set<i64>& present, i64 size) {
  constexpr size_t kShown = 5;
  const auto begin = present.lower_bound(0);
  const auto end = present.lower_bound(std::max<i64>(size, 0));
  MissingNumbers missing{std::max<i64>(size, 0) - std::distance(begin, end), {}};
  auto next = begin;
  for (i64 number = 0; number < size && missing.first.size() < kShown; ++number) {
    if (next != end && *next == number) {
      ++next;
    } else {
      missing.first.push_back(number);
    }
  }
  return missing;
}

std::string to_string(const MissingNumbers& missing) {
  const i64 more = missing.count - std::ssize(missing.first);
  return fmt::format("{}{}", fmt::join(missing.first, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace shardtool::mapping
