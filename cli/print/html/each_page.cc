#include "cli/print/html/each_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/print/html/tensor_grid.h"
#include "cli/print/search/words.h"

namespace shardtool::cli {

void write_title(Page& page, std::string_view title, const JsonView& document) {
  page.html().open("header").element("h1", title);
  if (document.has("mesh") && !document["mesh"].empty()) {
    page.html().open("p", {{"class", "soft"}}).text("mesh ");
    bool is_first = true;
    for (const JsonView& axis : document["mesh"].elements()) {
      page.text(fmt::format("{}{}=", is_first ? "" : ", ", axis["axis"].text()))
          .count(axis["size"]);
      is_first = false;
    }
    page.html().close();
  }
  page.html().close();
}

namespace {

/// Writes the rules whose tensors every rank holds whole.
void write_whole_rules(Page& page, const std::vector<JsonView>& rules) {
  if (rules.empty()) return;
  page.html().element("h3", "Whole on every rank");
  page.begin_table({"rule", "#tensors", "#bytes", "such as"});
  for (const JsonView& rule : rules) {
    page.begin_row().text_cell(rule["example"]["rule"].text()).count_cell(rule["tensors"]);
    page.bytes_cell(rule["bytes"]);
    page.cell([&] { page.html().element("code", rule["example"]["name"].text()); }).end_row();
  }
  page.end_table();
}

}  // namespace

void write_rules(Page& page, const JsonView& document, i64 devices) {
  if (!document.has("rules") || document["rules"].empty()) return;
  page.begin_section("Who holds what");
  page.note(
      "One tensor of each rule, the largest: every cell is a shard with the ranks that hold it.");
  page.html().open("div", {{"class", "rules"}});
  std::vector<JsonView> whole;
  for (const JsonView& rule : document["rules"].elements()) {
    if (is_whole(rule, devices)) {
      whole.push_back(rule);
    } else {
      write_tensor_grid(page, rule, devices);
    }
  }
  page.html().close();
  write_whole_rules(page, whole);
  page.end_section();
}

void write_list(Page& page, std::string_view heading, const JsonView& texts) {
  if (texts.empty()) return;
  page.begin_section(heading);
  page.html().open("ul");
  for (const JsonView& text : texts.elements()) page.html().element("li", text.text());
  page.html().close();
  page.end_section();
}

std::vector<ComparedRow> compared_rows(const JsonView& search, size_t most) {
  const JsonView rows = search["rows"];
  const auto row_at = [&](const JsonView& index) {
    return rows[static_cast<size_t>(index.count())];
  };
  std::vector<ComparedRow> compared{{row_at(search["optimum"]), std::nullopt}};
  for (const JsonView& loss : search["losses"].elements()) {
    if (compared.size() == most) break;
    compared.emplace_back(row_at(loss["row"]), loss);
  }
  return compared;
}

std::string loss_text(const std::optional<JsonView>& loss) {
  if (!loss) return "the best";
  return loss_words((*loss)["by"].number(), (*loss)["reason"].text());
}

void write_loss_cell(Page& page, const std::optional<JsonView>& loss) {
  page.html().open("td", {{"class", "brief"}});
  if (loss && is_tie((*loss)["by"].number())) {
    page.shown((*loss)["by"], kAsGood);
  } else if (loss) {
    page.fraction((*loss)["by"]).text(": " + (*loss)["reason"].text());
  } else {
    page.text("the best");
  }
  page.html().close();
}

void note_experts(Page& page, const JsonView& rows) {
  const auto all = rows.elements();
  const auto distributes = [](const JsonView& row) {
    return row["ep"].count() > 1 || row["expert_parallel"].truth();
  };
  if (std::ranges::none_of(all, distributes)) return;
  page.note(
      "ep is the number of groups that have sequences of their own and share the experts. "
      "Experts are cut over tp; with expert-parallel, every device has whole ones.");
}

void write_runner_up(Page& page, const std::string& name, const JsonView& loss) {
  page.html().open("p");
  if (is_tie(loss["by"].number())) {
    page.text(fmt::format("The runner-up is {}: it is ", name)).shown(loss["by"], kAsGood);
    page.text(".");
  } else {
    page.text(fmt::format("The runner-up is {}: it loses by ", name));
    page.fraction(loss["by"]).text(fmt::format(", most of it {}.", loss["reason"].text()));
  }
  page.html().close();
}

}  // namespace shardtool::cli
