#include "cli/commands/init.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/answer_file.h"
#include "cli/session.h"

namespace shardtool::cli {
namespace {

/// Counts the proposed rules by their certainty: "9 sure, 3 likely, 1 guess".
std::string certainties(const api::InitReport& report) {
  const auto count = [&](mapping::Certainty wanted) {
    return std::count_if(report.proposed.begin(), report.proposed.end(),
                         [&](const auto& note) { return note.certainty == wanted; });
  };
  return fmt::format("{} sure, {} likely, {} to be checked (\"guess\")",
                     count(mapping::Certainty::kSure), count(mapping::Certainty::kLikely),
                     count(mapping::Certainty::kGuess));
}

void warn_of_proposals(const api::InitReport& report, const Session& session) {
  if (!report.proposed.empty()) {
    session.warn(
        fmt::format("no preset knows this model; the rules are proposed from names, shapes "
                    "and config.json: {}; each rule's note says why",
                    certainties(report)));
  }
  if (report.replicated.empty()) return;
  const std::string what = report.preset.empty()
                               ? std::string("tensors whose use is not known")
                               : fmt::format("tensors that preset:{} does not know", report.preset);
  session.warn(fmt::format("{} are replicated until you change their rules: {}", what,
                           fmt::join(report.replicated, ", ")));
}

ExitCode run_init(const InitArgs& args, Session& session) {
  const api::InitReport report = api::init_mapping(to_options(args));
  if (args.output) write_answer(*args.output, report.mapping);
  if (session.json()) {
    session.document("init", Status::kOk, [&](JsonWriter& json) {
      if (!report.preset.empty()) json.field("preset", report.preset);
      json.list("replicated", report.replicated);
      json.key("proposed").begin_array();
      for (const mapping::ProposalNote& note : report.proposed) {
        json.begin_object().field("match", note.form);
        json.field("certainty", to_string(note.certainty)).field("reason", note.reason);
        json.end_object();
      }
      json.end_array();
      json.key("mapping").raw(report.mapping);
      if (args.output) json.field("output", *args.output);
    });
  } else {
    session.out().write(args.output ? *args.output + "\n" : report.mapping);
  }
  warn_of_proposals(report, session);
  return ExitCode::kSuccess;
}

}  // namespace

api::InitOptions to_options(const InitArgs& args) {
  api::InitOptions options;
  options.source = args.source;
  options.preset = args.preset.value_or("");
  if (args.mesh) options.mesh = mesh::parse_mesh(*args.mesh);
  return options;
}

Command init_command(InitArgs& args) {
  return {
      .name = "init",
      .summary = "write a mapping file to start from",
      .description =
          "Chooses the preset that fits the checkpoint's config.json and writes a "
          "mapping that extends it, with the mesh and the axes spelled out. For a model that no "
          "preset knows, it proposes axes and a rule for every kind of tensor from names, "
          "shapes and config.json. The note of each rule begins with sure, likely, guess (the "
          "order inside a fused tensor is not known) or unknown (replicated), and says why.",
      .examples = {"shardtool init models/llama-8b -o mapping.json",
                   "shardtool init models/llama-8b --mesh tp=8"},
      .arguments =
          {{.name = "SRC", .help = "a checkpoint", .target = &args.source, .required = true},
           {.name = "--preset",
            .value = "NAME",
            .help = "the preset to extend",
            .target = &args.preset,
            .offers = api::preset_names},
           {.name = "--mesh",
            .value = "AXIS=N,...",
            .help = "the devices, default tp=2",
            .target = &args.mesh},
           {.name = "--output",
            .short_name = "-o",
            .value = "FILE",
            .help = "a new file; without it the mapping goes to standard output",
            .target = &args.output}},
      .run = [&args](Session& session) { return run_init(args, session); }};
}

}  // namespace shardtool::cli
