#include "cli/print/html/each_page.h"

#include <fmt/format.h>

#include "cli/print/html/tensor_grid.h"

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

void write_rules(Page& page, const JsonView& document, i64 devices) {
  if (!document.has("rules") || document["rules"].empty()) return;
  page.begin_section("Who holds what");
  page.note(
      "One tensor of each rule, the largest: every cell is a shard with the ranks that hold it.");
  page.html().open("div", {{"class", "rules"}});
  for (const JsonView& rule : document["rules"].elements()) write_tensor_grid(page, rule, devices);
  page.html().close();
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

}  // namespace shardtool::cli
