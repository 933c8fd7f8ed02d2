#include "cli/commands/plan.h"

#include <fmt/format.h>

#include <span>

#include "cli/answer_file.h"
#include "cli/args/emit_args.h"
#include "cli/args/engine_args.h"
#include "cli/args/html_file.h"
#include "cli/args/plan_profile.h"
#include "cli/print/plan.h"
#include "cli/print/plan_ops.h"
#include "cli/print/text.h"
#include "lib/api/planning/plan_diff.h"
#include "lib/base/error.h"
#include "lib/base/shell.h"
#include "lib/base/text.h"
#include "lib/plan/collective/profile_list.h"

namespace shardtool::cli {
namespace {

ExitCode exit_code(const PlanArgs& args, const api::PlanReport& report) {
  const bool must_fit = (args.workload.budget || args.fail_over_budget) && !args.exit_zero;
  if (must_fit && report.memory.fits == false) return ExitCode::kNegative;
  constexpr auto kSomethingMoves = static_cast<ExitCode>(2);  // exit code of `terraform plan
                                                              // -detailed-exitcode`
  const bool moves = report.reshard && report.reshard->changes > 0;
  return args.detailed_exitcode && moves ? kSomethingMoves : ExitCode::kSuccess;
}

/// Writes a sealed plan file: the JSON document with the layouts that `plan diff` draws, and the
/// recipe.
void save_plan(const std::string& path, api::PlanReport report) {
  report.drawings->pairs.clear();  // as many as pairs of devices
  std::string text;
  const char* status = report.memory.fits == false ? "findings" : "ok";
  auto json = open_document([&text](std::string_view part) { text += part; }, "plan", status);
  write_fields(json, report);
  json.key("apply").raw(report.recipe);
  write_answer(path, api::sealed(std::move(text)));
}

std::string saved_text(const Style& style, const std::string& path) {
  return labelled(style, "saved",
                  fmt::format("{}; apply it with: shardtool reshard --plan {} -o FOLDER",
                              quote_for_message(path), path_argument(path)));
}

/// Writes the page of a difference, whose document does not list the values of single devices and
/// tensors.
void write_diff_page(const std::optional<std::string>& file, Status status, api::PlanDiff diff) {
  std::erase_if(diff.changes, is_of_one);
  write_page(file, "plan_diff", status, [&](JsonWriter& json) { write_fields(json, diff); });
}

/// `plan diff A B`: prints the differences between two plans.
ExitCode run_plan_diff(const PlanArgs& args, Session& session) {
  constexpr size_t kWords = 3;
  if (args.sources.size() != kWords) {
    throw Error(ErrorCode::kUsage, "'plan diff' needs two plans")
        .help("for example: shardtool plan diff a.json b.json");
  }
  require_page_place(args.html, std::span(args.sources).subspan(1));
  const bool shows_plans = args.html || args.format == "md";
  api::PlanDiff diff = api::diff_plans(args.sources[1], args.sources[2], shows_plans);
  const Status status = diff.equal() ? Status::kOk : Status::kFindings;
  if (args.html) {
    write_diff_page(args.html, status, diff);
    diff.plans = {};
  }
  if (session.json() || args.format == "json") {
    session.document("plan_diff", status, [&](JsonWriter& json) { write_fields(json, diff); });
  } else if (args.format == "csv") {
    print_csv(session, diff);
  } else if (args.format == "md") {
    session.out().write(markdown(diff));
  } else {
    print_text(session, diff);
  }
  return diff.equal() ? ExitCode::kSuccess : ExitCode::kNegative;
}

/// `plan SRC --ops`: prints how every op runs.
ExitCode run_plan_ops(const PlanArgs& args, Session& session) {
  const api::OpPlanReport report = api::plan_ops(to_ops_options(args));
  if (session.json() || args.format == "json") {
    session.document("plan_ops", Status::kOk,
                     [&](JsonWriter& json) { write_fields(json, report); });
  } else {
    print_text(session, report, args.explain.value_or(""));
  }
  return ExitCode::kSuccess;
}

/// Writes the page, whose document does not list the moves of single tensors: a mixture of experts
/// has tens of thousands.
void write_plan_page(const std::optional<std::string>& file, Status status,
                     api::PlanReport report) {
  report.tensors.clear();
  write_page(file, "plan", status, [&](JsonWriter& json) { write_fields(json, report); });
}

ExitCode run_plan(const PlanArgs& args, Session& session) {
  before_meeting(calibration_meeting(args), [&] { require_effects(args); });
  if (args.sources.front() == "diff") return run_plan_diff(args, session);
  if (args.sources.front() == "profile") return run_plan_profile(args, session);
  if (args.ops.ops) return run_plan_ops(args, session);
  require_page_place(args.html, args.sources);
  if (args.output) {
    require_apart(*args.output, args.sources);
    require_free(*args.output);
  }
  api::PlanOptions options = to_options(args);
  options.draws = args.html || args.output;  // `plan diff` draws the layouts of two plan files
  options.emit = to_emit_format(args.emit, args.format, session);
  // Without times the text shows no collectives; JSON documents and plan files always do.
  options.prices_forward =
      args.profile || args.output || args.html || session.json() || args.format == "json";
  api::PlanReport report = api::make_plan(options);
  if (args.output) save_plan(*args.output, report);
  const auto status = report.memory.fits == false ? Status::kFindings : Status::kOk;
  if (args.html) write_plan_page(args.html, status, report);
  report.drawings.reset();  // only files have them
  if (options.emit) {
    session.out().write(report.emitted);
  } else if (session.json() || args.format == "json") {
    session.document("plan", status, [&](JsonWriter& json) { write_fields(json, report); });
  } else if (args.format == "csv") {
    print_csv(session, report);
  } else if (args.format == "md") {
    session.out().write(markdown(report));
  } else {
    print_text(session, report);
    if (args.output) {
      session.out().write(session.quiet() ? *args.output + "\n"
                                          : saved_text(session.out_style(), *args.output));
    }
  }
  return exit_code(args, report);
}

}  // namespace

Command plan_command(PlanArgs& args) {
  using Words = std::vector<std::string>;
  Command command{
      .name = "plan",
      .summary = "what a layout costs, and what it takes to get there",
      .description =
          "Reads headers, or config.json where there are no weights, and says, for every device, "
          "what weights, cache and the rest take: does it fit, and what would? With --to or "
          "--to-mesh also what a reshard moves, beside the bound that no plan can go below. "
          "Byte counts of weights and moves are exact; activations are an estimate. No tensor data "
          "is read. `plan search` finds the best layout of a server. "
          "`plan diff A B` exits 0 when the two plans are equal and 1 when they differ; a plan "
          "that does not fit into --budget exits 1, too.",
      .examples =
          {"shardtool plan models/llama-70b --tp 8 --budget 80GB --context 8192 --batch 16",
           "shardtool plan models/llama-70b --tp 8 --what-if 1,2,4,8,16 --profile h100-sxm",
           "shardtool plan out/tp4 --to-mesh tp=8 -o plan.json",
           "shardtool plan model -m fsdp.json --from param --to compute",
           "shardtool plan models/llama-70b --tp 8 --ops --prompt-len 2048 --compare-solvers",
           "shardtool plan profile calibrate -o here.json",
           "mpirun -n 4 shardtool plan profile calibrate /data -o cluster.json"},
      .arguments =
          {{.name = "SRC",
            .help = "a checkpoint, or output folders that together hold every shard, or a folder "
                    "with config.json alone; or: diff A B, to compare two plans: files of -o, "
                    "documents of --json, or pages of --html; profile list, or profile show NAME, "
                    "for what is known of hardware; profile calibrate [FOLDER], to measure this "
                    "machine",
            .target = &args.sources,
            .required = true}},
      .next_words = {{"",
                      [] {
                        return Words{"diff", "profile"};
                      }},
                     {"profile",
                      [] {
                        return Words{"list", "show", "calibrate"};
                      }},
                     {"profile show", plan::profile_names}},
      .run = [&args](Session& session) { return run_plan(args, session); },
      .meeting = [&args] { return calibration_meeting(args); }};
  append(command.arguments, plan_arguments(args));
  return command;
}

}  // namespace shardtool::cli
