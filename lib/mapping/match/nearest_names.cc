#include "lib/mapping/match/nearest_names.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shardtool::mapping {
namespace {

/// Levenshtein distance, by rows.
size_t distance_between(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

}  // namespace

std::string pattern_form(std::string_view pattern) {
  std::string text;
  for (size_t at = 0; at < pattern.size(); ++at) {
    const size_t close = pattern[at] == '<' ? pattern.find('>', at) : pattern.npos;
    text += close == pattern.npos ? pattern[at] : '*';
    if (close != pattern.npos) at = close;
  }
  return text;
}

std::vector<std::string> nearest_names(std::string_view pattern,
                                       const std::vector<std::string>& names) {
  constexpr size_t kMostNames = 4096;
  constexpr size_t kLongest = 256;
  constexpr size_t kMostAnswers = 3;
  const std::string form = pattern_form(pattern.substr(0, kLongest));
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const std::string& name : names) {
    if (ranked.size() == kMostNames || name.size() > kLongest) continue;
    const size_t distance = distance_between(form, name);
    if (2 * distance < std::max(form.size(), name.size())) ranked.emplace_back(distance, name);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> nearest;
  for (const auto& [distance, name] : ranked) {
    if (nearest.size() < kMostAnswers) nearest.push_back(name);
  }
  return nearest;
}

}  // namespace shardtool::mapping
