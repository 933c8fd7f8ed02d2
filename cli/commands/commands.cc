#include "cli/commands/commands.h"

#include "cli/commands/schema.h"
#include "cli/commands/version.h"

namespace shardtool::cli {
namespace {

std::vector<Argument> global_arguments(GlobalArgs& args) {
  return {
      {.name = "--json",
       .help = "print one JSON document on standard output",
       .target = &args.json},
      {.name = "--quiet",
       .short_name = "-q",
       .help = "print the output's path only",
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

Commands::Commands() {
  tree_.global = global_arguments(global_);
  tree_.commands = {inspect_command(inspect_),
                    split_command(split_),
                    merge_command(merge_),
                    reshard_command(reshard_),
                    plan_command(plan_),
                    check_command(check_),
                    validate_command(validate_),
                    diff_command(diff_),
                    explain_command(explain_),
                    presets_command(presets_),
                    layouts_command(layouts_),
                    graphs_command(graphs_),
                    init_command(init_),
                    schema_command(),
                    doctor_command(doctor_),
                    bench_command(bench_),
                    completion_command(completion_, tree_),
                    help_command(help_, tree_),
                    version_command()};
}

}  // namespace shardtool::cli
