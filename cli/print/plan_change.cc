#include "cli/print/plan_change.h"

#include <charconv>
#include <cmath>

#include "cli/print/search/words.h"
#include "lib/base/checked.h"
#include "lib/base/text.h"
#include "lib/plan/collective/collective_time.h"

namespace shardtool::cli {
namespace {

template <class Number>
Number number_of(const std::string& json) {
  Number number = 0;
  std::from_chars(json.data(), json.data() + json.size(), number);
  return number;
}

bool is_of_bytes(const std::string& field) {
  return field.find("bytes") != field.npos || field.find("_by_class/") != field.npos;
}

}  // namespace

bool is_number(const std::string& json) {
  return !json.empty() && json.find_first_not_of("0123456789.eE+-") == json.npos;
}

std::string value_text(const std::string& field, const std::string& json) {
  if (json.empty()) return "absent";
  if (!is_number(json)) return json;
  if (field.ends_with("_us")) return plan::format_modelled_us(number_of<double>(json));
  if (json.find_first_not_of("0123456789") != json.npos) return json;
  const i64 count = number_of<i64>(json);
  return is_of_bytes(field) ? format_bytes(count) : format_count(count);
}

std::string growth_text(double before, double after) {
  if (before <= 0) return "";
  const double growth = after / before - 1;
  return (growth < 0 ? "\u2212" : "+") + percent_text(std::abs(growth));
}

std::string growth_text(const std::string& before, const std::string& after) {
  if (!is_number(before) || !is_number(after)) return "";
  return growth_text(number_of<double>(before), number_of<double>(after));
}

}  // namespace shardtool::cli
