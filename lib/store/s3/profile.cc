#include "lib/store/s3/profile.h"

#include <algorithm>

namespace shardtool::store::s3 {
namespace {

std::string_view without_spaces(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string section_name(std::string_view line) {
  constexpr std::string_view kProfile = "profile ";
  std::string_view name = without_spaces(line.substr(1, line.find(']') - 1));
  if (name.starts_with(kProfile)) name = without_spaces(name.substr(kProfile.size()));
  return std::string(name);
}

}  // namespace

std::map<std::string, Section, std::less<>> parse_profiles(std::string_view text) {
  std::map<std::string, Section, std::less<>> sections;
  Section* section = nullptr;
  std::string outer;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view raw = text.substr(0, end);
    const std::string_view line = without_spaces(raw);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      section = &sections[section_name(line)];
      continue;
    }
    const size_t equals = line.find('=');
    if (section == nullptr || equals == std::string_view::npos) continue;
    const std::string key(without_spaces(line.substr(0, equals)));
    const std::string value(without_spaces(line.substr(equals + 1)));
    const bool is_nested = raw.front() == ' ' || raw.front() == '\t';
    if (!is_nested) outer = value.empty() ? key + "." : "";
    (*section)[is_nested ? outer + key : key] = value;
  }
  return sections;
}

}  // namespace shardtool::store::s3
