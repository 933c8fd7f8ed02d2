#include "cli/commands/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/format_page.h"
#include "cli/print/answer.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/check/rules.h"

namespace shardtool::cli {
namespace {

/// Prints a check rule like an error id: its title and explanation.
void answer_rule(Session& session, const check::RuleInfo& rule) {
  if (!session.json()) {
    session.out().write(fmt::format("{}  {}  ({}, {})\n{}\n", session.out_style().bold(rule.id),
                                    rule.title, check::family_of(rule.id), to_string(rule.severity),
                                    rule.explanation));
    return;
  }
  session.document("explain", Status::kOk, [&rule](JsonWriter& json) {
    json.field("code", rule.id).field("severity", to_string(rule.severity));
    json.field("title", rule.title).field("explanation", rule.explanation);
  });
}

const ErrorInfo& known_error(const std::string& id) {
  if (const auto* info = find_error(id)) return *info;
  std::vector<std::string> ids;
  for (const auto& row : error_table()) ids.emplace_back(row.id);
  for (const auto& row : check::rule_table()) ids.emplace_back(row.id);
  Error error(ErrorCode::kUsage, fmt::format("there is no error '{}'", quote_for_message(id)));
  if (const auto hint = did_you_mean(id, ids); !hint.empty()) error.help(hint);
  if (std::ranges::count(format_pages(), id, &FormatPage::name) > 0)
    error.help(fmt::format("`shardtool help {}` shows the page of this name", id));
  throw std::move(error)
      .help("`shardtool explain E` lists the errors, `shardtool check --rules` the rules")
      .help("to explain a tensor, name the checkpoint and the tensor");
}

/// Throws kUsage where several ids are given, unless the first one is a checkpoint's name, too.
void check_one_id(const ExplainArgs& args) {
  const bool is_id =
      find_error(args.subject) != nullptr || check::find_rule(args.subject) != nullptr;
  if (!is_id || !args.tensor || std::filesystem::exists(args.subject)) return;
  throw Error(ErrorCode::kUsage, fmt::format("'{}' is explained alone", args.subject))
      .help(fmt::format("shardtool explain {}", args.subject));
}

ExitCode run_explain(const ExplainArgs& args, Session& session) {
  check_one_id(args);
  if (args.tensor) {
    answer(session, "explain", Status::kOk, api::explain(to_options(args)));
  } else if (args.subject == "E" || args.subject == "e") {
    answer(session, "explain", Status::kOk, error_table());
  } else if (const auto* rule = check::find_rule(args.subject)) {
    answer_rule(session, *rule);
  } else {
    answer(session, "explain", Status::kOk, known_error(args.subject));
  }
  return ExitCode::kSuccess;
}

}  // namespace

api::ExplainOptions to_options(const ExplainArgs& args) {
  return {.source = args.subject,
          .tensor = args.tensor.value_or(""),
          .mapping = to_mapping_choice(args.mapping, kMapping)};
}

Command explain_command(ExplainArgs& args) {
  Command command{
      .name = "explain",
      .summary = "explain an error, a rule of check, or what happens to one tensor",
      .description =
          "For a tensor: the rule that it matches and where the rule stands, how every "
          "axis is cut over the mesh, and which slices every rank holds.",
      .examples = {"shardtool explain E0203",
                   "shardtool explain models/llama-8b lm_head.weight --tp 4"},
      .arguments = {{.name = "SUBJECT",
                     .help = "an id of an error or a rule, E0203 or ST0301, or a checkpoint; E "
                             "lists all errors, `shardtool check --rules` all rules",
                     .target = &args.subject,
                     .required = true},
                    {.name = "TENSOR",
                     .help = "the name of a tensor in the checkpoint",
                     .target = &args.tensor}},
      .run = [&args](Session& session) { return run_explain(args, session); }};
  append(command.arguments, mapping_arguments(args.mapping, kMapping));
  return command;
}

}  // namespace shardtool::cli
