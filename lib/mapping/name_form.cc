#include "shardtool/mapping/name_form.h"

#include <algorithm>

namespace shardtool::mapping {
namespace {

bool is_number(std::string_view part) {
  return !part.empty() &&
         std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string name_form(std::string_view name) {
  std::string form;
  while (true) {
    const std::string_view part = name.substr(0, name.find('.'));
    form += is_number(part) ? "*" : part;
    if (part.size() == name.size()) return form;
    form += '.';
    name.remove_prefix(part.size() + 1);
  }
}

}  // namespace shardtool::mapping
