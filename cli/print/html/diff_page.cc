#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/print/html/each_page.h"
#include "cli/print/search/words.h"

namespace shardtool::cli {
namespace {

constexpr size_t kMostChanges = 60;  ///< rows of a section

/// Words for the parts of a plan's document, in the order of the page; others follow by name.
constexpr std::pair<const char*, const char*> kParts[] = {{"devices", "Memory of the devices"},
                                                          {"fits", "Fit"},
                                                          {"comm", "Collectives"},
                                                          {"roofline", "Time of a pass"},
                                                          {"reshard", "Reshard"}};

std::string part_of(const std::string& field) {
  return field.substr(0, field.find('/'));
}

bool is_bytes(const std::string& field) {
  return field.find("bytes") != std::string::npos || field.find("_by_class/") != std::string::npos;
}

/// True if the value is a JSON number.
bool is_number(const JsonView& value) {
  const std::string json = value.json();
  return json.find_first_not_of("0123456789.eE+-") == std::string::npos;
}

bool is_count(const JsonView& value) {
  return value.json().find_first_not_of("0123456789") == std::string::npos;
}

void write_value(Page& page, const JsonView& change, const char* side) {
  page.cell(
      [&] {
        if (!change.has(side)) return (void)page.text("absent");
        const JsonView value = change[side];
        const std::string field = change["field"].text();
        if (is_count(value)) return (void)(is_bytes(field) ? page.bytes(value) : page.count(value));
        if (is_number(value))
          return (void)(field.ends_with("_us") ? page.microseconds(value)
                                               : page.shown(value, value.json()));
        page.text(value.json());
      },
      true);
}

/// "+12 %" from the first plan to the second; empty where that says nothing.
std::string growth_text(const JsonView& change) {
  if (!change.has("a") || !change.has("b")) return "";
  if (!is_number(change["a"]) || !is_number(change["b"])) return "";
  const double before = change["a"].number();
  const double after = change["b"].number();
  if (before <= 0) return "";
  const double growth = after / before - 1;
  return (growth < 0 ? "\u2212" : "+") + percent_text(std::abs(growth));
}

void write_part(Page& page, const std::string& heading, const std::vector<JsonView>& changes) {
  page.begin_section(heading);
  page.begin_table({"value", "#first plan", "#second plan", "#change"});
  for (size_t i = 0; i < std::min(kMostChanges, changes.size()); ++i) {
    page.begin_row().text_cell(changes[i]["field"].text());
    write_value(page, changes[i], "a");
    write_value(page, changes[i], "b");
    page.cell([&] { page.text(growth_text(changes[i])); }, true).end_row();
  }
  page.end_table();
  if (changes.size() > kMostChanges)
    page.note(fmt::format("The other {} are in the JSON document of this page.",
                          changes.size() - kMostChanges));
  page.end_section();
}

}  // namespace

void write_plan_diff(Page& page, const JsonView& diff) {
  write_title(page, "Difference of two plans", diff);
  const JsonView changes = diff["changes"];
  page.begin_verdict(changes.empty() ? "good" : "plain");
  page.text(changes.empty()       ? "The plans are equal."
            : changes.size() == 1 ? "One value differs."
                                  : fmt::format("{} values differ.", changes.size()));
  page.end_verdict();
  std::map<std::string, std::vector<JsonView>> parts;
  for (const JsonView& change : changes.elements())
    parts[part_of(change["field"].text())].push_back(change);
  for (const auto& [part, heading] : kParts) {
    const auto found = parts.find(part);
    if (found == parts.end()) continue;
    write_part(page, heading, found->second);
    parts.erase(found);
  }
  for (const auto& [part, of_part] : parts) write_part(page, part, of_part);
}

}  // namespace shardtool::cli
