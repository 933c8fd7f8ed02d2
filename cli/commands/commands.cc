#include "cli/commands/commands.h"

#include "cli/commands/bench.h"
#include "cli/commands/check.h"
#include "cli/commands/diff.h"
#include "cli/commands/doctor.h"
#include "cli/commands/explain.h"
#include "cli/commands/finish.h"
#include "cli/commands/init.h"
#include "cli/commands/inspect.h"
#include "cli/commands/merge.h"
#include "cli/commands/plan.h"
#include "cli/commands/plan_search.h"
#include "cli/commands/reference/axis.h"
#include "cli/commands/reference/completion.h"
#include "cli/commands/reference/graphs.h"
#include "cli/commands/reference/help.h"
#include "cli/commands/reference/layouts.h"
#include "cli/commands/reference/presets.h"
#include "cli/commands/reference/schema.h"
#include "cli/commands/reference/version.h"
#include "cli/commands/reshard.h"
#include "cli/commands/resume.h"
#include "cli/commands/split.h"
#include "cli/commands/validate.h"

namespace shardtool::cli {
namespace {

std::vector<Argument> global_arguments(GlobalArgs& args) {
  return {
      {.name = "--json",
       .help = "print one JSON document on standard output",
       .target = &args.json},
      {.name = "--quiet",
       .short_name = "-q",
       .help =
           "print no report, no progress and no warnings. A command that writes prints the path "
           "of a finished output only; one that shows something, such as inspect, explain or "
           "presets, still shows it; plan, check, validate, diff, bench, doctor and resume "
           "--list print no text, and the exit status says the result",
       .target = &args.quiet},
      {.name = "--verbose",
       .short_name = "-v",
       .help = "say what errors mean and what a run took",
       .target = &args.verbose},
      {.name = "--color",
       .value = "WHEN",
       .help = "use colours; also NO_COLOR, FORCE_COLOR",
       .target = &args.color,
       .choices = {"auto", "always", "never"},
       .environment = "SHARDTOOL_COLOR"},
      {.name = "--progress",
       .value = "HOW",
       .help = "show progress on standard error",
       .target = &args.progress,
       .choices = {"auto", "always", "never", "json"},
       .environment = "SHARDTOOL_PROGRESS"},
      {.name = "-h", .help = "short help", .target = &args.short_help},
      {.name = "--help", .help = "all there is to say", .target = &args.long_help},
      {.name = "--version",
       .short_name = "-V",
       .help = "print the version",
       .target = &args.version},
  };
}

}  // namespace

struct Commands::Arguments {
  InspectArgs inspect;
  SplitArgs split;
  MergeArgs merge;
  ReshardArgs reshard;
  FinishArgs finish;
  ResumeArgs resume;
  PlanArgs plan;
  SearchArgs plan_search;
  CheckArgs check;
  ValidateArgs validate;
  DiffArgs diff;
  ExplainArgs explain;
  AxisArgs axis;
  ShowArgs layouts;
  ShowArgs presets;
  ShowArgs graphs;
  SchemaArgs schema;
  InitArgs init;
  DoctorArgs doctor;
  BenchArgs bench;
  CompletionArgs completion;
  HelpArgs help;
};

Commands::Commands() : arguments_(std::make_unique<Arguments>()) {
  Arguments& args = *arguments_;
  tree_.global = global_arguments(global_);
  tree_.commands = {inspect_command(args.inspect),
                    split_command(args.split),
                    merge_command(args.merge),
                    reshard_command(args.reshard),
                    finish_command(args.finish),
                    resume_command(args.resume),
                    plan_command(args.plan),
                    plan_search_command(args.plan_search),
                    check_command(args.check),
                    validate_command(args.validate),
                    diff_command(args.diff),
                    explain_command(args.explain),
                    axis_command(args.axis),
                    presets_command(args.presets),
                    layouts_command(args.layouts),
                    graphs_command(args.graphs),
                    init_command(args.init),
                    schema_command(args.schema),
                    doctor_command(args.doctor),
                    bench_command(args.bench),
                    completion_command(args.completion, tree_),
                    help_command(args.help, tree_),
                    version_command()};
}

Commands::~Commands() = default;

}  // namespace shardtool::cli
