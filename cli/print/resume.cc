#include "cli/print/resume.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "cli/print/text.h"
#include "lib/base/shell.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr size_t kLongestLine = 4000;

std::string age_text(i64 seconds) {
  constexpr i64 kMinute = 60;
  constexpr i64 kHour = 60 * kMinute;
  constexpr i64 kDay = 24 * kHour;
  if (seconds < 2 * kMinute) return fmt::format("{} s ago", seconds);
  if (seconds < 2 * kHour) return fmt::format("{} min ago", seconds / kMinute);
  return seconds < 2 * kDay ? fmt::format("{} h ago", seconds / kHour)
                            : fmt::format("{} days ago", seconds / kDay);
}

/// "12 of 21 tensors finished". A run without a record may have finished tensors, too.
std::string finished_text(const api::InterruptedRun& run) {
  if (!run.tensors) return "no record of its progress";
  return fmt::format("{} of {} finished", format_count(run.tensors_finished),
                     plural(*run.tensors, "tensor"));
}

/// Words that go on with a run; empty if they are not known.
std::vector<std::string> words_to_go_on(const api::InterruptedRun& run) {
  if (run.shares > 0 && run.missing.empty()) return {"finish", run.output};
  std::vector<std::string> words = run.command;
  if (words.empty()) return {};
  if (run.shares > 0) {
    const api::Share next{run.missing.front(), run.shares};
    words.insert(words.end(), {"--share", api::format_share(next)});
  } else if (std::ranges::find(words, "--resume") == words.end()) {
    words.emplace_back("--resume");
  }
  return words;
}

/// Command that goes on with a run, from this working folder; empty if it is not known, or would
/// begin again.
std::string go_on_text(const api::InterruptedRun& run) {
  const auto words = words_to_go_on(run);
  if (words.empty() || run.is_running || !run.can_go_on()) return {};
  std::error_code unknown;
  const bool is_here = run.started_in == std::filesystem::current_path(unknown);
  const std::string before = is_here ? "" : fmt::format("cd {} && ", path_argument(run.started_in));
  return before + command_text(words);
}

std::string discard_text(const api::InterruptedRun& run) {
  return command_text({"resume", "--discard", run.output});
}

std::string run_text(const api::InterruptedRun& run) {
  return fmt::format("{}: {}{}, {} reserved on disk, {}",
                     quote_for_message(run.output, kLongestLine),
                     run.is_running ? "a process is writing it, " : "", finished_text(run),
                     format_bytes(run.bytes), age_text(run.seconds_ago));
}

void print_run(Session& session, const api::InterruptedRun& run) {
  const auto print = [&](std::string_view label, const std::string& text) {
    session.out().write(labelled(session.out_style(), label, text));
  };
  print("run", run_text(run));
  if (!run.missing.empty()) {
    print("shares", fmt::format("{} of {} have not ended: {}", run.missing.size(), run.shares,
                                fmt::join(run.missing, ", ")));
  }
  if (!run.tensors) {
    print("record",
          "a run writes it every 5 s or 4 GiB; without it, the same command begins from the start");
  }
  if (run.is_running) return;
  const std::string go_on = go_on_text(run);
  if (!go_on.empty()) print("go on", quote_for_message(go_on, kLongestLine));
  print("delete", quote_for_message(discard_text(run), kLongestLine));
}

}  // namespace

void print_text(Session& session, const ResumeReport& report) {
  for (const api::InterruptedRun& run : report.found.runs) {
    if (session.quiet()) {
      session.out().write(run.output + "\n");
    } else if (report.discarded) {
      session.out().write(
          labelled(session.out_style(), "deleted",
                   fmt::format("{}: {}, {}", quote_for_message(run.output, kLongestLine),
                               finished_text(run), format_bytes(run.bytes))));
    } else {
      print_run(session, run);
    }
  }
  if (session.quiet()) return;
  if (report.found.runs.empty()) session.out().write("no interrupted run\n");
  if (report.found.of_others > 0) {
    session.out().write(labelled(
        session.out_style(), "others",
        plural(report.found.of_others, "run") + " that this user did not leave, not looked at"));
  }
}

void write_fields(JsonWriter& json, const ResumeReport& report) {
  json.field("discarded", report.discarded).key("runs").begin_array();
  for (const api::InterruptedRun& run : report.found.runs) {
    json.begin_object().field("output", run.output).field("folder", run.folder);
    json.field("running", run.is_running).field("tensors_finished", run.tensors_finished);
    if (run.tensors) json.field("tensors", *run.tensors);
    json.field("bytes", run.bytes).field("seconds_ago", run.seconds_ago);
    if (!run.command.empty()) {
      json.list("command", run.command).field("started_in", run.started_in);
    }
    if (run.shares > 0) json.field("shares", run.shares).list("missing", run.missing);
    const std::string go_on = report.discarded ? std::string() : go_on_text(run);
    if (!go_on.empty()) json.field("go_on", go_on);
    json.end_object();
  }
  json.end_array().field("of_others", report.found.of_others);
}

}  // namespace shardtool::cli
