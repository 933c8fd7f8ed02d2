#include "cli/commands/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/args/html_file.h"
#include "cli/print/json.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

/// Splits "a,b" and calls `take` for each name. Throws kUsage if it returns false.
template <class Take>
void each_name(std::string_view flag, std::string_view text, const std::vector<std::string>& known,
               Take take) {
  for (const std::string_view name : split_at(text, ",")) {
    if (take(name)) continue;
    Error error(ErrorCode::kUsage,
                fmt::format("{} does not know '{}'", flag, quote_for_message(name)));
    if (const auto hint = did_you_mean(name, known); !hint.empty()) error.help(hint);
    throw std::move(error).help(fmt::format("known are: {}", fmt::join(known, ", ")));
  }
}

TableFormat table_format(std::string_view name) {
  if (name == "csv") return TableFormat::kCsv;
  if (name == "tsv") return TableFormat::kTsv;
  if (name == "md") return TableFormat::kMarkdown;
  return TableFormat::kText;
}

std::vector<const InspectColumn*> to_columns(const std::string& query) {
  const auto& known = inspect_columns();
  std::vector<std::string> names;
  for (const auto& column : known) names.emplace_back(column.name);
  std::vector<const InspectColumn*> columns;
  each_name("--query", query, names, [&](std::string_view name) {
    const auto found = std::find_if(known.begin(), known.end(),
                                    [name](const auto& column) { return column.name == name; });
    if (found == known.end()) return false;
    columns.push_back(&*found);
    return true;
  });
  return columns;
}

/// Writes the page, whose document lists no tensors: 64 parts of each would be too many to look at.
void write_summary_page(const std::optional<std::string>& file, api::InspectReport report) {
  report.list.clear();
  write_page(file, "inspect", Status::kOk, [&](JsonWriter& json) { write_fields(json, report); });
}

ExitCode run_inspect(const InspectArgs& args, Session& session) {
  const auto view = to_view(args);
  auto options = to_options(args);
  require_page_place(args.html, {&args.source, 1});
  options.list_tensors = view.tensors || session.json();
  const bool is_comment = view.summary && view.format == TableFormat::kMarkdown;
  options.draws = args.html.has_value() || is_comment;
  const auto report = api::inspect(options);
  if (args.html) write_summary_page(args.html, report);
  if (session.json() || args.format == "json") {
    session.document("inspect", Status::kOk, [&](JsonWriter& json) { write_fields(json, report); });
  } else if (is_comment) {
    session.out().write(markdown(report, view));
  } else {
    print_text(session, report, view);
    if (args.filter && report.list.empty()) {
      session.warn("no tensor matches --filter; * stays inside one dotted part, ** does not");
    }
  }
  return ExitCode::kSuccess;
}

}  // namespace

api::InspectOptions to_options(const InspectArgs& args) {
  api::InspectOptions options;
  options.source = args.source;
  if (args.mapping.given()) options.mapping = to_mapping_choice(args.mapping, kMapping);
  options.filter = args.filter.value_or("");
  return options;
}

InspectView to_view(const InspectArgs& args) {
  InspectView view;
  const auto format = args.format.value_or("text");
  view.format = table_format(format);
  const bool has_summary = format == "text" || format == "md";
  view.tensors = args.tensors || args.query || args.filter || !has_summary;
  view.summary = format == "text" ? !args.query : !view.tensors;
  if (args.query) view.columns = to_columns(*args.query);
  if (!args.by) return view;
  view.by_dtype = view.by_module = false;
  each_name("--by", *args.by, {"dtype", "module"}, [&view](std::string_view name) {
    view.by_dtype |= name == "dtype";
    view.by_module |= name == "module";
    return name == "dtype" || name == "module";
  });
  return view;
}

Command inspect_command(InspectArgs& args) {
  Command command{
      .name = "inspect",
      .summary = "show what a checkpoint holds, or what a mapping would do with it",
      .description =
          "Reads headers only, never tensor data. With a mapping, a preset or a mesh it shows what "
          "every rank would hold, and with --tensors or --query the rule of every tensor; outputs "
          "of shardtool show it without one. SRC#PREFIX, here and in all commands, takes only the "
          "tensors whose names begin with PREFIX and a dot, and removes these from the names: "
          "step-1000#model for a training checkpoint. FORMAT:SRC chooses a format if a folder has "
          "files of several; otherwise the first of manifest, dcp, safetensors, torch and gguf is "
          "read, and a warning names the others. megatron:SRC, torchtitan:SRC, deepseek:SRC and "
          "meta:SRC show the files of another tool as the model's tensors.",
      .examples = {"shardtool inspect models/llama-8b",
                   "shardtool inspect models/llama-8b --query name,dtype,shape --format csv",
                   "shardtool inspect models/llama-8b --preset llama --tp 8 --tensors",
                   "shardtool inspect torch:models/gpt2"},
      .arguments =
          {{.name = "SRC",
            .help =
                "a folder, an index.json, a .safetensors or torch file, or an output of shardtool",
            .target = &args.source,
            .required = true},
           {.name = "--tensors", .help = "list every tensor", .target = &args.tensors},
           {.name = "--filter",
            .value = "GLOB",
            .help = "list the tensors whose names match; * stops at dots, ** does not",
            .target = &args.filter},
           {.name = "--query",
            .value = "COLUMNS",
            .help = "list these of name,dtype,shape,bytes,file,offset,rule,strategy,axes",
            .target = &args.query},
           {.name = "--format",
            .value = "FORMAT",
            .help =
                "how tensors are listed; md without a list is the summary as a comment for a pull "
                "request, json the document of --json",
            .target = &args.format,
            .choices = {"text", "csv", "tsv", "md", "json"}},
           {.name = "--by",
            .value = "GROUPS",
            .help = "sum up by dtype, module or both (default)",
            .target = &args.by},
           html_argument(args.html)},
      .run = [&args](Session& session) { return run_inspect(args, session); }};
  append(command.arguments, mapping_arguments(args.mapping, kMapping));
  return command;
}

}  // namespace shardtool::cli
