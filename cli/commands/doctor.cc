#include "cli/commands/doctor.h"

#include <algorithm>

#include "cli/print/answer.h"
#include "lib/api/doctor.h"

namespace shardtool::cli {
namespace {

ExitCode run_doctor(const DoctorArgs& args, Session& session) {
  const auto checks = api::doctor(args.folder, args.mpi_plugin);
  const bool well = std::all_of(checks.begin(), checks.end(),
                                [](const api::DoctorCheck& check) { return check.ok; });
  answer(session, "doctor", well ? Status::kOk : Status::kFindings, checks);
  return well ? ExitCode::kSuccess : ExitCode::kNegative;
}

}  // namespace

Command doctor_command(DoctorArgs& args) {
  return {
      .name = "doctor",
      .summary = "look at this machine: what helps, what is missing",
      .description =
          "Checks the processor, threads, memory, direct I/O and free space in a "
          "folder, the Hugging Face cache, GPUs, and the engines that validate can run on: "
          "TCP, MPI, NCCL and their versions. Of s3://bucket/prefix it lists uploads that nobody "
          "finished. Exits 1 when something needs attention.",
      .examples = {"shardtool doctor", "shardtool doctor /data/out --json",
                   "shardtool doctor s3://bucket/models"},
      .arguments = {{.name = "FOLDER",
                     .help = "where outputs would go, default here; or a place on an object store",
                     .target = &args.folder},
                    {.name = "--mpi-plugin",
                     .value = "FILE",
                     .help = "what speaks MPI, instead of the one beside the program",
                     .target = &args.mpi_plugin,
                     .environment = "SHARDTOOL_MPI_PLUGIN",
                     .advanced = true}},
      .run = [&args](Session& session) { return run_doctor(args, session); }};
}

}  // namespace shardtool::cli
