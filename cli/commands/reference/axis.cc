#include "cli/commands/reference/axis.h"

#include <limits>

#include "cli/print/answer.h"
#include "cli/size_argument.h"

namespace shardtool::cli {
namespace {

ExitCode run_axis(const AxisArgs& args, Session& session) {
  answer(session, "axis", Status::kOk, api::axis(to_options(args)));
  return ExitCode::kSuccess;
}

}  // namespace

api::AxisOptions to_options(const AxisArgs& args) {
  api::AxisOptions options{
      .name = args.name, .size = {}, .mapping = to_mapping_choice(args.mapping, kNamedMapping)};
  constexpr i64 kMostIndices = std::numeric_limits<i64>::max() / 2;
  if (args.size) options.size = parse_count("--size", *args.size, 1, kMostIndices);
  return options;
}

Command axis_command(AxisArgs& args) {
  Command command{
      .name = "axis",
      .summary = "explain how one logical axis is cut, without a checkpoint",
      .description =
          "For a logical axis of a mapping: the mesh axes that cut it (Haliax: physical axis), "
          "their number of devices, its size, and the indices that every device holds. An extent "
          "of \"10 (up to 12)\" is a size of 10 that becomes 12 with the padding of the shards, "
          "or, where they have none, when it is rounded up to a multiple of the devices. A cut "
          "that "
          "split refuses is refused.",
      .examples = {"shardtool axis embed --size 4096 -m fsdp.json --axes param",
                   "shardtool axis batch --size 32 -m mapping.json --mesh replica=2,data=8"},
      .arguments = {{.name = "NAME",
                     .help = "a logical axis of the mapping",
                     .target = &args.name,
                     .required = true},
                    {.name = "--size",
                     .value = "N",
                     .help = "its number of indices, in place of the one that the mapping gives",
                     .target = &args.size}},
      .run = [&args](Session& session) { return run_axis(args, session); }};
  append(command.arguments, mapping_arguments(args.mapping, kNamedMapping));
  return command;
}

}  // namespace shardtool::cli
