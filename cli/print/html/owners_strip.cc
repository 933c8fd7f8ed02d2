#include "cli/print/html/owners_strip.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/print/html/device_groups.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr double kOwnersLeft = 84, kOwnersWidth = 400, kOwnersTop = 18, kOwnersHeight = 26,
                 kOwnersBorder = 2;
constexpr size_t kOwnersColours = 8;
constexpr size_t kOwnersMostRows = 24;  ///< of the table

std::string owning_ranks(const JsonView& owners) {
  std::vector<i64> ranks;
  for (const JsonView& rank : owners["ranks"].elements()) ranks.push_back(rank.count());
  return rank_list(ranks);
}

void write_owners_strip(Page& page, const JsonView& rule) {
  HtmlWriter& html = page.html();
  const double width = kOwnersLeft + kOwnersWidth + kOwnersBorder;
  const double height = kOwnersTop + kOwnersHeight + kOwnersBorder;
  open_picture(html, width, height, "tensors of the rule by rank");
  const double all = rule["tensors"].number();
  const std::vector<JsonView> owners = rule["owners"].elements();
  double begin = kOwnersLeft;
  bool lacks_labels = false;
  for (size_t i = 0; i < owners.size(); ++i) {
    constexpr double kOwnersCharacter = 7, kOwnersBaseline = 17;
    const JsonView tensors = owners[i]["tensors"];
    const double length = kOwnersWidth * tensors.number() / all;
    const std::string ranks = owning_ranks(owners[i]);
    html.open("rect", {{"class", fmt::format("part f{}", i % kOwnersColours)},
                       {"x", coordinate(begin)},
                       {"y", coordinate(kOwnersTop)},
                       {"width", coordinate(length)},
                       {"height", coordinate(kOwnersHeight)},
                       {"data-at", tensors.pointer()},
                       {"data-value", tensors.json()}});
    html.element("title", fmt::format("{} on {}", plural(tensors.count(), "tensor"), ranks))
        .close();
    if (length > kOwnersCharacter * static_cast<double>(ranks.size() + 1)) {
      draw_text(html, ranks, begin + length / 2, kOwnersTop + kOwnersBaseline, "middle");
    } else {
      lacks_labels = true;
    }
    begin += length;
  }
  constexpr double kOwnersGap = 6;
  draw_text(html, "tensors: " + format_count(rule["tensors"].count()),
            kOwnersLeft + kOwnersWidth / 2, kOwnersTop - kOwnersGap, "middle");
  html.close();
  if (lacks_labels) html.element("figcaption", "Too narrow for names: the table has them.");
  html.close();
}

void write_owners_table(Page& page, const std::vector<JsonView>& owners) {
  page.html().open("details").element("summary", "The ranks of the tensors as a table");
  page.begin_table({"ranks", "#tensors", "the first"});
  for (size_t i = 0; i < std::min(kOwnersMostRows, owners.size()); ++i) {
    page.begin_row().text_cell(owning_ranks(owners[i])).count_cell(owners[i]["tensors"]);
    page.text_cell(owners[i]["first"].text()).end_row();
  }
  page.end_table();
  page.note_rest(owners.size(), kOwnersMostRows);
  page.html().close();
}

}  // namespace

void write_owners(Page& page, const JsonView& rule) {
  if (!rule.has("owners")) return;
  page.note("Its tensors are on different ranks:");
  write_owners_strip(page, rule);
  write_owners_table(page, rule["owners"].elements());
  page.note("One of them is held so:");
}

}  // namespace shardtool::cli
