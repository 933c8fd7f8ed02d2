#pragma once

#include <sstream>
#include <string>
#include <vector>

/// Names of tensors in fixtures: "layers.{0,1}.q" stands for "layers.0.q" and "layers.1.q".
namespace shardtool::test {

/// Returns the text with its first {..} replaced.
inline std::string numbered(std::string text, const std::string& number) {
  const size_t begin = text.find('{');
  if (begin != text.npos) text.replace(begin, text.find('}') + 1 - begin, number);
  return text;
}

/// Returns the numbers in the first {..}, or one number that replaces nothing.
inline std::vector<std::string> numbers_of(const std::string& pattern) {
  const size_t begin = pattern.find('{');
  if (begin == pattern.npos) return {"0"};
  std::istringstream list(pattern.substr(begin + 1, pattern.find('}') - begin - 1));
  std::vector<std::string> numbers;
  for (std::string number; std::getline(list, number, ',');) numbers.push_back(number);
  return numbers;
}

/// Returns all names that a pattern with any number of {..} stands for.
inline std::vector<std::string> expanded(const std::string& pattern) {
  if (pattern.find('{') == pattern.npos) return {pattern};
  std::vector<std::string> names;
  for (const std::string& number : numbers_of(pattern)) {
    for (std::string& name : expanded(numbered(pattern, number))) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace shardtool::test
