#include "cli/print/html/before_after.h"

#include <cmath>

#include "cli/print/search/words.h"

namespace shardtool::cli {
namespace {

std::optional<JsonView> value_in(std::optional<JsonView> value,
                                 std::initializer_list<std::string_view> path) {
  for (const std::string_view key : path) {
    if (!value || !value->has(key)) return std::nullopt;
    value = (*value)[key];
  }
  return value;
}

bool is_number(const JsonView& value) {
  return value.json().find_first_not_of("0123456789.eE+-") == std::string::npos;
}

}  // namespace

bool BeforeAfter::is_same() const {
  if (!before || !after) return is_absent();
  return before->json() == after->json();
}

BeforeAfter value_at(const BeforeAfter& documents, std::initializer_list<std::string_view> path) {
  return {value_in(documents.before, path), value_in(documents.after, path)};
}

std::string growth_text(const BeforeAfter& values) {
  if (!values.before || !values.after) return "";
  if (!is_number(*values.before) || !is_number(*values.after)) return "";
  if (values.is_same()) return "as before";
  const double before = values.before->number();
  if (before <= 0) return "";
  const double growth = values.after->number() / before - 1;
  return (growth < 0 ? "\u2212" : "+") + percent_text(std::abs(growth));
}

void begin_changes(Page& page, std::string_view title) {
  page.begin_table({title, "#before", "#after", "#change"});
}

void write_change(Page& page, std::string_view name, const BeforeAfter& values, ShowNumber show) {
  if (values.is_absent()) return;
  page.begin_row().text_cell(name);
  for (const std::optional<JsonView>& value : {values.before, values.after})
    page.cell([&] { value ? (page.*show)(*value) : page.text(""); }, true);
  page.cell([&] { page.text(growth_text(values)); }, true).end_row();
}

void write_instead(Page& page, const BeforeAfter& values, ShowNumber show) {
  (page.*show)(*values.after);
  if (values.is_same()) {
    page.text(" as before");
  } else if (values.before) {
    page.text(" instead of ");
    (page.*show)(*values.before);
    const std::string growth = growth_text(values);
    if (!growth.empty()) page.text(" (" + growth + ")");
  }
}

}  // namespace shardtool::cli
