#include "cli/print/html/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/print/html/each_page.h"
#include "lib/base/error.h"

namespace shardtool::cli {

namespace {

constexpr const char* kTitleBegin = "shardtool ";

/// Writes the page of two plans, which may have been edited.
void write_given_plans(Page& page, const JsonView& diff) {
  try {
    write_plan_diff(page, diff);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInternal) throw;
    throw Error(ErrorCode::kPlanInvalid,
                fmt::format("the plans are not as `shardtool plan` writes them: {}", error.what()))
        .help("write both again with this version of shardtool");
  }
}

}  // namespace

std::string html_page(std::string_view document) {
  const auto json = nlohmann::ordered_json::parse(document);
  const JsonView view(json);
  const std::string command = view["command"].text();
  std::string words = command;
  std::ranges::replace(words, '_', ' ');
  Page page(kTitleBegin + words);
  if (command == "plan") {
    write_plan(page, view);
  } else if (command == "plan_diff") {
    write_given_plans(page, view);
  } else if (command == "plan_search") {
    write_plan_search(page, view);
  } else if (command == "plan_search_train") {
    write_plan_search_train(page, view);
  } else if (command == "inspect") {
    write_inspect(page, view);
  } else if (command == "check") {
    write_check(page, view);
  } else if (command == "validate") {
    write_validate(page, view);
  } else {
    throw Error(ErrorCode::kInternal, "there is no page for '" + command + "'");
  }
  return page.take(document);
}

std::string page_beginning() {
  return std::string(kPageHead) + kTitleBegin;
}

}  // namespace shardtool::cli
