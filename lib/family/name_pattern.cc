#include "lib/family/name_pattern.h"

namespace shardtool::family {

std::vector<std::string> alternatives(std::string_view pattern) {
  const size_t close = pattern.find('}');
  const size_t open = close == pattern.npos ? close : pattern.rfind('{', close);
  if (open == pattern.npos) return {std::string(pattern)};
  std::vector<std::string> names;
  const std::string_view before = pattern.substr(0, open);
  std::string_view choices = pattern.substr(open + 1, close - open - 1);
  for (size_t comma = 0; comma != choices.npos;) {
    comma = choices.find(',');
    const std::string one = std::string(before) + std::string(choices.substr(0, comma)) +
                            std::string(pattern.substr(close + 1));
    for (std::string& name : alternatives(one)) names.push_back(std::move(name));
    if (comma != choices.npos) choices.remove_prefix(comma + 1);
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
