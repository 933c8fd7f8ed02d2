#include "cli/commands/resume.h"

#include "cli/args/mapping_args.h"
#include "cli/print/resume.h"
#include "cli/size_argument.h"
#include "lib/base/error.h"

namespace shardtool::cli {
namespace {

ExitCode run_resume(const ResumeArgs& args, Session& session) {
  refuse_both("--list", args.list, "--discard", args.discard);
  if (!args.list && !args.discard) {
    throw Error(ErrorCode::kUsage, "'resume' needs --list or --discard")
        .help("--list prints the command that goes on with each run");
  }
  const ResumeReport report{args.discard, args.discard ? api::discard_runs(args.folder)
                                                       : api::interrupted_runs(args.folder)};
  if (!session.json()) {
    print_text(session, report);
    return ExitCode::kSuccess;
  }
  session.document("resume", Status::kOk, [&](JsonWriter& json) { write_fields(json, report); });
  return ExitCode::kSuccess;
}

}  // namespace

Command resume_command(ResumeArgs& args) {
  return {
      .name = "resume",
      .summary = "list interrupted runs, or delete what one left",
      .description =
          "split, merge and reshard write into a hidden folder beside the output (of "
          "s3://bucket/prefix: below it), and an "
          "interruption leaves it there if it has finished work worth keeping. --list shows for "
          "every such run how far it came, its size on disk and age, the shares that have not "
          "ended, and the command that goes on with it. --discard deletes what the runs of one "
          "output left, shares included. It deletes nothing while a process writes the output, "
          "nothing of other users, nothing through a symbolic link, and never the output "
          "itself. Running the same command again without --resume deletes it, too.",
      .examples = {"shardtool resume --list out", "shardtool resume --discard out/tp4"},
      .arguments = {{.name = "FOLDER",
                     .help = "a folder of outputs, or one output; with --discard one output, or "
                             "the hidden folder of its run",
                     .target = &args.folder,
                     .required = true},
                    {.name = "--list",
                     .help = "show what interrupted runs left",
                     .target = &args.list},
                    {.name = "--discard",
                     .help = "delete what the interrupted runs of one output left",
                     .target = &args.discard}},
      .run = [&args](Session& session) { return run_resume(args, session); }};
}

}  // namespace shardtool::cli
