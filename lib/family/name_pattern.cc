#include "lib/family/name_pattern.h"

#include "lib/base/text.h"

namespace shardtool::family {

std::vector<std::string> alternatives(std::string_view pattern) {
  const size_t close = pattern.find('}');
  const size_t open = close == pattern.npos ? close : pattern.rfind('{', close);
  if (open == pattern.npos) return {std::string(pattern)};
  std::vector<std::string> names;
  for (const std::string_view choice : split_at(pattern.substr(open + 1, close - open - 1), ",")) {
    const std::string one = std::string(pattern.substr(0, open)) + std::string(choice) +
                            std::string(pattern.substr(close + 1));
    for (std::string& name : alternatives(one)) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> placeholders(std::string_view pattern) {
  std::vector<std::string> names;
  for (size_t open = pattern.find('<'); open != pattern.npos; open = pattern.find('<', open + 1)) {
    const size_t close = pattern.find('>', open);
    if (close == pattern.npos) break;
    names.emplace_back(pattern.substr(open + 1, close - open - 1));
  }
  return names;
}

}  // namespace shardtool::family
