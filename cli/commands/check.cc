#include "cli/commands/check.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "cli/answer_file.h"
#include "cli/args/html_file.h"
#include "cli/args/watch.h"
#include "cli/print/findings/findings.h"
#include "cli/session.h"
#include "cli/size_argument.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/store/local/failure.h"
#include "lib/store/local/file.h"

namespace shardtool::cli {
namespace {

constexpr std::string_view kSubsetFlag = "--read-data-subset";

/// Text of what `print` writes to an output.
template <class Print>
std::string printed(const Print& print) {
  struct Free {
    void operator()(char* text) const { std::free(text); }
  };
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  char* text = nullptr;
  size_t size = 0;
  {
    const std::unique_ptr<std::FILE, Close> file(::open_memstream(&text, &size));
    if (!file) throw Error(ErrorCode::kLimit, "there is no memory for the report");
    Output out(file.get());
    print(out);
    out.flush();
  }
  const std::unique_ptr<char, Free> owner(text);
  return {text, size};
}

/// Writes into a file that may exist, such as a pipe; of a new file nothing stays after a failure.
/// Throws kWriteFailed and kNoSpace with the path.
void write_file(const std::string& path, const std::string& text, const char* mode = "w") {
  std::error_code ignored;
  const auto type = std::filesystem::symlink_status(path, ignored).type();
  if (type == std::filesystem::file_type::not_found) return store::write_new_file(path, text);
  std::FILE* const file = std::fopen(path.c_str(), mode);
  if (file == nullptr) throw store::write_failure("open the file", path, errno);
  errno = 0;
  const bool is_written =
      std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
  const int reason = errno;
  const bool is_closed = std::fclose(file) == 0;
  if (is_written && is_closed) return;
  throw store::write_failure("write the file", path, is_written ? errno : reason);
}

/// True if a finding is at or above --fail-on, which decides the exit status.
bool fails(const CheckArgs& args, const api::CheckReport& report) {
  if (args.fail_on == "never") return false;
  return report.errors > 0 || (args.fail_on == "warning" && report.warnings > 0);
}

std::string format_of(const CheckArgs& args, const Session& session) {
  if (session.json()) return "json";
  if (args.format) return *args.format;
  const auto actions = process_environment()("GITHUB_ACTIONS");
  return actions && *actions == "true" ? "github" : "text";
}

void print_document(Output& out, bool failed, const api::CheckReport& report) {
  auto json = open_document(out, "check", failed ? "findings" : "ok");
  write_fields(json, report);
  json.end_object();
}

void print_report(Output& out, const Style& style, const std::string& format, bool failed,
                  const api::CheckReport& report) {
  if (format == "json") return print_document(out, failed, report);
  if (format == "github") return print_findings_github(out, report);
  if (format == "sarif") return print_findings_sarif(out, report);
  if (format == "junit") return print_findings_junit(out, report);
  if (format == "gitlab") return print_findings_gitlab(out, report);
  if (format == "md") return out.write(findings_markdown(report));
  print_findings_text(out, style, report);
}

/// Appends to the job summary page of GitHub Actions.
void append_step_summary(const api::CheckReport& report) {
  const auto path = process_environment()("GITHUB_STEP_SUMMARY");
  if (!path) return;
  write_file(*path, printed([&](Output& out) { out.write(findings_markdown(report)); }), "a");
}

void write_baseline(const std::string& path, const api::CheckReport& report) {
  write_file(path, printed([&](Output& out) { out.write(api::baseline_text(report, path)); }));
}

void answer_check(const CheckArgs& args, Session& session, const api::CheckReport& report) {
  const bool has_file = args.output && *args.output != "-";
  // With a file, --json is for standard output, and --format for the file.
  const std::string format = has_file && args.format ? *args.format : format_of(args, session);
  const bool failed = fails(args, report);
  if (format == "github") append_step_summary(report);
  if (!has_file) {
    const bool silent = session.quiet() && format == "text";
    if (!silent) print_report(session.out(), session.out_style(), format, failed, report);
    return;
  }
  write_file(*args.output, printed([&](Output& out) {
    print_report(out, Style(false), format, failed, report);
  }));
  if (session.json()) return print_document(session.out(), failed, report);
  if (!session.quiet()) session.out().write(findings_summary(report) + "\n");
}

/// Takes a baseline that does not exist for an empty one, and says so.
void allow_new_baseline(api::CheckOptions& options, const Session& session) {
  std::error_code failure;
  if (options.baseline.empty() || std::filesystem::exists(options.baseline, failure) || failure)
    return;
  session.warn(
      fmt::format("there is no baseline '{}': nothing is known yet; write it with "
                  "--write-baseline {}",
                  options.baseline, options.baseline));
  options.baseline.clear();
}

/// Splits "ST0301,ST04" at the commas.
std::vector<std::string> split_ids(const std::vector<std::string>& typed) {
  std::vector<std::string> ids;
  for (const std::string& text : typed) {
    for (const std::string_view id : split_at(text, ",")) {
      if (!id.empty()) ids.emplace_back(id);
    }
  }
  return ids;
}

/// Lists all rules with the severities that the arguments give them.
ExitCode list_rules(const CheckArgs& args, Session& session) {
  check::Profile profile(args.profile.value_or(""));
  for (const std::string& id : split_ids(args.ignore)) profile.ignore(id);
  if (session.json()) {
    session.document("check", Status::kOk, [&](JsonWriter& json) { write_rules(json, profile); });
  } else {
    print_rules(session.out(), profile);
  }
  return ExitCode::kSuccess;
}

ExitCode run_check(const CheckArgs& args, Session& session) {
  if (args.rules) return list_rules(args, session);
  require_page_place(args.html, args.sources);
  auto options = to_options(args);
  if (args.output && *args.output != "-") require_apart(*args.output, args.sources);
  if (args.write_baseline) require_apart(*args.write_baseline, args.sources);
  allow_new_baseline(options, session);
  const auto report = [&] {
    const Watch watch(session, options.resources, "reading");
    return api::check(options);
  }();
  if (args.write_baseline) write_baseline(*args.write_baseline, report);
  write_page(args.html, "check", fails(args, report) ? Status::kFindings : Status::kOk,
             [&](JsonWriter& json) { write_fields(json, report); });
  answer_check(args, session, report);
  if (report.unreadable > 0) return ExitCode::kInput;
  return fails(args, report) && !args.exit_zero ? ExitCode::kNegative : ExitCode::kSuccess;
}

Error no_subset(const std::string& text) {
  return Error(ErrorCode::kUsage, fmt::format("{} '{}' is no fraction of the data", kSubsetFlag,
                                              quote_for_message(text)))
      .help("for example 1/10 (the first tenth), 5% or 20GiB");
}

std::vector<Argument> check_arguments(CheckArgs& args) {
  return {
      {.name = "PATH",
       .help = "checkpoints; folders of one split are checked together",
       .target = &args.sources},
      {.name = "--format",
       .value = "FORMAT",
       .help = "how findings are printed, md as a comment for a pull request; github when "
               "GITHUB_ACTIONS is true",
       .target = &args.format,
       .choices = {"text", "json", "github", "sarif", "junit", "gitlab", "md"}},
      {.name = "--output",
       .value = "FILE",
       .help = "write the findings to FILE; standard output then has one line, or the document of "
               "--json",
       .target = &args.output},
      {.name = "--fail-on",
       .value = "SEVERITY",
       .help = "the least severity that makes the exit status 1 (default error)",
       .target = &args.fail_on,
       .choices = {"error", "warning", "never"}},
      {.name = "--exit-zero", .help = "exit with 0 whatever was found", .target = &args.exit_zero},
      {.name = "--profile",
       .value = "NAME",
       .help =
           "other severities for some rules. hf: files without an index are errors. vllm: uneven "
           "and partly overlapping shards are errors, since engines load equal ones. dcp: file "
           "names that are not portable are errors. hub: pickles, files above 500 GB and "
           "folders of more than 10,000 files are errors. strict: every rule is one step more "
           "severe. `shardtool check --rules --profile NAME` lists all of them",
       .target = &args.profile,
       .choices = check::profile_names()},
      {.name = "--ignore",
       .value = "RULES",
       .help = "turn rules off, ST0301 or all of ST04; repeatable",
       .target = &args.ignore},
      {.name = "--baseline",
       .value = "FILE",
       .help = "leave out the findings that this file lists, by rule, file, tensor and rank; if it "
               "does not exist, everything is reported",
       .target = &args.baseline},
      {.name = "--write-baseline",
       .value = "FILE",
       .help = "write such a file; its paths count from the working directory",
       .target = &args.write_baseline},
      {.name = "--read-data",
       .help = "read all data: NaN, zeros, hashes, replicas",
       .target = &args.read_data},
      {.name = std::string(kSubsetFlag),
       .value = "PART",
       .help = "read some tensors: 1/10, 5% or 20GiB of them",
       .target = &args.read_data_subset},
      {.name = "--rules",
       .help = "list the rules with their severities (of --profile and --ignore) and exit",
       .target = &args.rules},
      html_argument(args.html)};
}

}  // namespace

check::DataSubset parse_subset(const std::string& text) {
  check::DataSubset subset;
  if (const auto slash = text.find('/'); slash != std::string::npos) {
    constexpr i64 kMostParts = 1'000'000;
    subset.parts = parse_count(kSubsetFlag, text.substr(slash + 1), 1, kMostParts);
    subset.part = parse_count(kSubsetFlag, text.substr(0, slash), 1, subset.parts);
    return subset;
  }
  if (text.ends_with('%')) {
    constexpr double kHundred = 100;
    const char* const end = text.data() + text.size() - 1;
    double percent = 0;
    const auto [at, error] = std::from_chars(text.data(), end, percent);
    if (error != std::errc() || at != end || !(percent > 0 && percent <= kHundred)) {
      throw no_subset(text);
    }
    subset.fraction = percent / kHundred;
    return subset;
  }
  subset.bytes = parse_size(kSubsetFlag, text);
  return subset;
}

api::CheckOptions to_options(const CheckArgs& args) {
  if (args.sources.empty()) {
    throw Error(ErrorCode::kUsage, "'check' needs PATH").help("usage: shardtool check PATH...");
  }
  api::CheckOptions options;
  options.sources = args.sources;
  if (args.mapping.given()) options.mapping = to_mapping_choice(args.mapping, kMapping);
  options.profile = args.profile.value_or("");
  options.ignore = split_ids(args.ignore);
  options.baseline = args.baseline.value_or("");
  if (args.read_data) options.data = check::DataSubset{};
  if (args.read_data_subset) options.data = parse_subset(*args.read_data_subset);
  set_resources(args.resources, options.resources);
  return options;
}

Command check_command(CheckArgs& args) {
  Command command{
      .name = "check",
      .summary = "look for everything that is wrong with a checkpoint",
      .description =
          "For CI. Reads headers only, unless --read-data is given, and never stops at the first "
          "problem. Takes whole checkpoints, outputs of shardtool, and with a mapping the shards "
          "of others. Exits 0 when nothing is at or above --fail-on, 1 with findings, 4 when "
          "a path cannot be read at all, whatever else is asked. `shardtool explain ST0301` says "
          "what a rule means.",
      .examples = {"shardtool check out/tp4",
                   "shardtool check models/llama-8b --preset llama --tp 8",
                   "shardtool check out/tp4 --read-data-subset 5% --format sarif --output c.sarif"},
      .arguments = check_arguments(args),
      .run = [&args](Session& session) { return run_check(args, session); }};
  append(command.arguments, resource_arguments(args.resources));
  append(command.arguments, mapping_arguments(args.mapping, kMapping));
  return command;
}

}  // namespace shardtool::cli
