#include "cli/commands/plan_search.h"

#include "cli/args/emit_args.h"
#include "cli/args/html_file.h"
#include "cli/args/train_search_args.h"
#include "cli/print/search/search.h"
#include "cli/print/search/training.h"
#include "cli/session.h"
#include "lib/api/plan_search.h"
#include "lib/base/error.h"

namespace shardtool::cli {

namespace {

/// Losses in the document of a page, which stays small for hundreds of layouts.
constexpr size_t kDrawnLosses = 200;
/// The same for ways to train, whose rows have their stages.
constexpr size_t kDrawnWays = 100;

/// Budgets for the page's picture of time against memory.
std::vector<i64> eighths_of(i64 bytes) {
  constexpr i64 kParts = 8;
  std::vector<i64> budgets;
  for (i64 part = 1; part < kParts; ++part) budgets.push_back(bytes / kParts * part);
  return budgets;
}

void write_train_page(const std::optional<std::string>& file,
                      const api::TrainSearchOptions& options,
                      const api::TrainSearchReport& report) {
  const api::TrainSearchReport drawn = api::with_named_rows(report, kDrawnWays);
  write_page(file, "plan_search_train", report.optimum ? Status::kOk : Status::kFindings,
             [&](JsonWriter& json) { write_fields(json, options, drawn); });
}

/// `plan search --train`: prints the best way to train.
ExitCode run_train_search(const SearchArgs& args, Session& session) {
  require_page_place(args.html, args.sources);
  api::TrainSearchOptions options = to_train_search_options(args);
  if (args.html) options.smaller_budgets = eighths_of(options.plan.device.usable_bytes());
  const api::TrainSearchReport report = api::search_training(options);
  if (args.html) write_train_page(args.html, options, report);
  if (session.json() || args.format == "json") {
    session.document("plan_search_train", report.optimum ? Status::kOk : Status::kFindings,
                     [&](JsonWriter& json) { write_fields(json, options, report); });
  } else if (args.format == "md" || !session.quiet()) {
    print_text(session, options, report,
               args.format == "md" ? TableFormat::kMarkdown : TableFormat::kText);
  }
  return report.optimum || args.exit_zero ? ExitCode::kSuccess : ExitCode::kNegative;
}

ExitCode run_plan_search(const SearchArgs& args, Session& session) {
  require_effects(args);
  if (args.training.train) return run_train_search(args, session);
  require_page_place(args.html, args.sources);
  api::SearchOptions options = to_search_options(args);
  options.plan.emit = to_emit_format(args.emit, args.format, session);
  const api::SearchReport report = api::search_layouts(options);
  const Status status = report.optimum ? Status::kOk : Status::kFindings;
  if (args.html) {
    const api::SearchReport drawn = api::with_named_rows(report, kDrawnLosses);
    write_page(args.html, "plan_search", status,
               [&](JsonWriter& json) { write_fields(json, options, drawn); });
  }
  if (options.plan.emit && report.optimum) {
    session.out().write(report.emitted);
  } else if (session.json() || args.format == "json") {
    session.document("plan_search", status,
                     [&](JsonWriter& json) { write_fields(json, options, report); });
  } else if (args.format == "md") {
    print_markdown(session, options, report);
  } else if (!session.quiet()) {
    print_text(session, options, report);
  }
  return report.optimum || args.exit_zero ? ExitCode::kSuccess : ExitCode::kNegative;
}

}  // namespace

Command plan_search_command(SearchArgs& args) {
  return {
      .name = "plan search",
      .summary = "the best layout of a server for a load, or of a training",
      .description =
          "Prices every layout of a model on every number of devices: replicas, pipeline stages, "
          "tensor-parallel devices, and for experts also groups with sequences of their own. "
          "Weights and caches are exact, from headers; times are modelled from the profile. A "
          "layout that `split` refuses, or that does not fit, is listed with the reason. Stages "
          "of a pipeline are counted with what the mapping puts there; a preset puts embedding and "
          "head on each, and shardtool-mapping(5) shows under \"at\" how to put them where vLLM "
          "and Megatron hold them. As many clients run at once as memory allows. If that would "
          "exceed --tpot, or load groups unevenly, fewer run and the rest wait. --objective user "
          "never holds clients back, since one at a time would always win. The best one is the "
          "optimum of the model, beside a bound that no layout exceeds. With --train: the best way "
          "to train, in "
          "which an exact program chooses what each layer recomputes. --virtual-stages deals the "
          "layers as Megatron's interleaved schedule does, which idles less and keeps more.",
      .examples =
          {"shardtool plan search models/llama-70b --profile h100-sxm --devices 1,2,4,8,16 "
           "--prompt-len 1024 --output-len 1024 --concurrency 16,64 --tpot 30",
           "shardtool plan search models/llama-70b models/llama-70b-fp8 --profile h100-sxm "
           "--devices 4,8 --concurrency 64 --kv-dtype bf16,fp8 --objective cost --price 2.5",
           "shardtool plan search models/llama-70b --train --profile h100-sxm --devices 64 "
           "--sequence 4096 --batch 256 --micro-batch 1,2"},
      .arguments = search_arguments(args),
      .run = [&args](Session& session) { return run_plan_search(args, session); }};
}

}  // namespace shardtool::cli
