#include "cli/print/html/layout_change.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "cli/print/html/held_parts.h"
#include "cli/print/html/tensor_grid.h"

namespace shardtool::cli {
namespace {

constexpr size_t kMostPictures = 16;  ///< pairs of drawings

std::string rule_of(const JsonView& rule) {
  return rule["example"]["rule"].text();
}

std::string example_of(const JsonView& rule) {
  return rule["example"]["name"].text();
}

/// Returns the rules of both plans in the order of the second, then those that only the first has.
std::vector<BeforeAfter> matched_rules(const BeforeAfter& plans) {
  std::vector<JsonView> before = (*plans.before)["rules"].elements();
  std::vector<BeforeAfter> matched;
  for (const JsonView& rule : (*plans.after)["rules"].elements()) {
    auto same = std::ranges::find(before, rule_of(rule), rule_of);
    if (same == before.end()) same = std::ranges::find(before, example_of(rule), example_of);
    matched.push_back({std::nullopt, rule});
    if (same == before.end()) continue;
    matched.back().before = *same;
    before.erase(same);
  }
  for (const JsonView& rule : before) matched.push_back({rule, std::nullopt});
  return matched;
}

i64 devices_of(const JsonView& plan) {
  return static_cast<i64>(plan["devices"].size());
}

std::string owners_of(const std::optional<JsonView>& rule) {
  return rule->has("owners") ? (*rule)["owners"].json() : "";
}

/// True if the tensors are on the same ranks, which hold the same parts of equal examples.
bool is_held_alike(const BeforeAfter& rule) {
  const JsonView before = (*rule.before)["example"];
  const JsonView after = (*rule.after)["example"];
  return before["shape"].json() == after["shape"].json() &&
         read_parts(before) == read_parts(after) && owners_of(rule.before) == owners_of(rule.after);
}

/// Rules by what became of them.
struct SortedRules {
  std::vector<BeforeAfter> changed;
  std::vector<std::string> alike;  ///< names
  std::vector<std::string> whole;  ///< on every rank in both plans, which have other ranks
};

SortedRules sorted_rules(const BeforeAfter& plans) {
  SortedRules sorted;
  for (const BeforeAfter& rule : matched_rules(plans)) {
    if (!rule.before || !rule.after) {
      sorted.changed.push_back(rule);
    } else if (is_held_alike(rule)) {
      sorted.alike.push_back(rule_of(*rule.after));
    } else if (is_whole(*rule.before, devices_of(*plans.before)) &&
               is_whole(*rule.after, devices_of(*plans.after))) {
      sorted.whole.push_back(rule_of(*rule.after));
    } else {
      sorted.changed.push_back(rule);
    }
  }
  std::ranges::stable_sort(sorted.changed, std::greater(), [](const BeforeAfter& rule) {
    return (rule.after ? *rule.after : *rule.before)["bytes"].count();
  });
  return sorted;
}

std::string heading_of(const BeforeAfter& rule) {
  if (!rule.before || !rule.after) return rule_of(rule.before ? *rule.before : *rule.after);
  const std::string before = rule_of(*rule.before);
  const std::string after = rule_of(*rule.after);
  return before == after ? after : fmt::format("{}, before {}", after, before);
}

void write_side(Page& page, const char* side, const std::optional<JsonView>& rule,
                const JsonView& plan) {
  page.html().open("div").element("p", fmt::format("{}: {}", side, mesh_text(plan)),
                                  {{"class", "side"}});
  if (rule) {
    write_holders(page, *rule, devices_of(plan));
  } else {
    page.note("No such rule.");
  }
  page.html().close();
}

void write_pair(Page& page, const BeforeAfter& rule, const BeforeAfter& plans) {
  page.html().line_break().open("article").element("h3", heading_of(rule));
  write_rule_facts(page, rule.after ? *rule.after : *rule.before);
  page.html().open("div", {{"class", "pair"}});
  write_side(page, "before", rule.before, *plans.before);
  write_side(page, "after", rule.after, *plans.after);
  page.html().close().close();
}

void write_names(Page& page, const char* what, const std::vector<std::string>& names) {
  if (!names.empty()) page.note(fmt::format("{}: {}.", what, fmt::join(names, ", ")));
}

}  // namespace

std::string mesh_text(const JsonView& plan) {
  std::string text;
  for (const JsonView& axis : plan["mesh"].elements()) {
    text +=
        fmt::format("{}{}={}", text.empty() ? "" : ", ", axis["axis"].text(), axis["size"].count());
  }
  return text.empty() ? "one device" : text;
}

void write_layout_change(Page& page, const BeforeAfter& plans) {
  page.begin_section("What is held elsewhere");
  if (!plans.before->has("rules") || !plans.after->has("rules")) {
    page.note(
        "Documents of --json have no layouts to draw: compare pages of `plan --html`, or files of "
        "`plan -o`.");
    page.end_section();
    return;
  }
  const SortedRules sorted = sorted_rules(plans);
  const auto is_of_both = [](const BeforeAfter& rule) { return rule.before && rule.after; };
  if (sorted.changed.empty()) page.note("Every rank holds the same parts as before.");
  if (std::ranges::any_of(sorted.changed, is_of_both))
    page.note(
        "One tensor of each rule whose layout changed, the largest: every cell is a shard with the "
        "ranks that hold it. Rules with the most bytes come first.");
  for (size_t r = 0; r < std::min(kMostPictures, sorted.changed.size()); ++r)
    write_pair(page, sorted.changed[r], plans);
  std::vector<std::string> not_drawn;
  for (size_t r = kMostPictures; r < sorted.changed.size(); ++r)
    not_drawn.push_back(heading_of(sorted.changed[r]));
  write_names(page, "Changed, too, and not drawn", not_drawn);
  write_names(page, "Whole on every rank, before and after", sorted.whole);
  write_names(page, "Held as before", sorted.alike);
  page.end_section();
}

}  // namespace shardtool::cli
