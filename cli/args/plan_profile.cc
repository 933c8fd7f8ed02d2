#include "cli/args/plan_profile.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/answer_file.h"
#include "cli/args/engine_args.h"
#include "cli/print/plan_cost.h"
#include "cli/print/text.h"
#include "cli/signals.h"
#include "cli/size_argument.h"
#include "lib/api/catalogue/profiles.h"
#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/base/shell.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr i64 kMostRounds = 1000;

/// Prints one profile in its file format.
void answer_text(Session& session, const std::string& name, const std::string& text) {
  if (!session.json()) {
    session.out().write(text);
    return;
  }
  session.document("plan_profile", Status::kOk,
                   [&](JsonWriter& json) { json.field("name", name).key("profile").raw(text); });
}

void answer_list(Session& session) {
  const auto profiles = api::list_profiles();
  if (!session.json()) {
    print_text(session, profiles);
    return;
  }
  session.document("plan_profile", Status::kOk,
                   [&](JsonWriter& json) { write_fields(json, profiles); });
}

/// Writes the profile to the -o file, if given, and prints it.
void answer_calibrated(const PlanArgs& args, Session& session,
                       const plan::HardwareProfile& profile) {
  const std::string text = plan::to_json(profile);
  if (args.output) write_answer(*args.output, text);
  if (!args.output || session.json()) {
    answer_text(session, profile.name, text);
    return;
  }
  if (session.quiet()) {
    session.out().write(*args.output + "\n");
    return;
  }
  print_calibrated(session, profile);
  session.out().write(
      labelled(session.out_style(), "saved",
               fmt::format("{}; use it with --profile {}", quote_for_message(*args.output),
                           path_argument(*args.output))));
}

Error unknown_form() {
  return Error(ErrorCode::kUsage,
               "'plan profile' takes list, show and a name, or calibrate and a folder")
      .help("for example: shardtool plan profile show h100-sxm");
}

void run_calibration(const PlanArgs& args, Session& session) {
  constexpr size_t kMostWords = 3;
  api::CalibrateOptions options;
  before_meeting(calibration_meeting(args), [&] {
    if (args.sources.size() > kMostWords) throw unknown_form();
    options = to_calibrate_options(args);
    if (args.output) require_free(*args.output);
  });
  const Interruptible work(catch_interrupts());
  answer_calibrated(args, session, api::calibrate(options));
}

}  // namespace

api::CalibrateOptions to_calibrate_options(const PlanArgs& args) {
  constexpr size_t kFolder = 2;
  const CalibrateArgs& typed = args.calibrate;
  api::CalibrateOptions options;
  if (args.sources.size() > kFolder) options.folder = args.sources[kFolder];
  if (args.output && !args.output->ends_with(".json")) {
    throw Error(ErrorCode::kUsage, fmt::format("a profile is a file that ends in .json, and '{}' "
                                               "does not",
                                               quote_for_message(*args.output)))
        .help("--profile takes names without it for profiles that are built in");
  }
  options.name = args.output ? std::filesystem::path(*args.output).stem().string() : "this-machine";
  if (typed.size) options.bytes = parse_size("--size", *typed.size);
  if (typed.rounds) options.rounds = parse_count("--rounds", *typed.rounds, 1, kMostRounds);
  if (typed.ranks)
    options.ranks = static_cast<int>(parse_count("--ranks", *typed.ranks, 2, kMostRanks));
  options.engine = to_engine(typed.engine);
  return options;
}

std::optional<comm::EngineChoice> calibration_meeting(const PlanArgs& args) {
  const auto& words = args.sources;
  if (words.size() < 2 || words[0] != "profile" || words[1] != "calibrate") return std::nullopt;
  return to_engine(args.calibrate.engine);
}

ExitCode run_plan_profile(const PlanArgs& args, Session& session) {
  const auto& words = args.sources;
  const std::string what = words.size() == 1 ? "list" : words[1];
  const size_t n = words.size();
  if (what == "list" && n <= 2) {
    answer_list(session);
  } else if (what == "show" && n == 3) {
    answer_text(session, words[2], api::profile_text(words[2]));
  } else if (what == "calibrate") {
    run_calibration(args, session);
  } else {
    throw unknown_form();
  }
  return ExitCode::kSuccess;
}

}  // namespace shardtool::cli
