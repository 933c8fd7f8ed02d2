#include "cli/print/html/before_after.h"

#include "cli/print/plan_change.h"

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
  const std::string before = values.before->json(), after = values.after->json();
  if (is_number(before) && before == after) return "as before";
  return growth_text(before, after);
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
