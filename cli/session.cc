#include "cli/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "lib/base/text.h"

namespace shardtool::cli {

Session::Session(const GlobalArgs& global, const std::vector<std::string>& words)
    : global_(global),
      words_(words),
      out_(stdout, style_of(global, STDOUT_FILENO).enabled()),
      out_style_(style_of(global, STDOUT_FILENO)),
      err_style_(style_of(global, STDERR_FILENO)),
      progress_(
          progress_mode(global.progress.value_or(""), is_terminal(STDERR_FILENO), global.quiet)) {}

void Session::warn(std::string_view text) const {
  if (quiet() || json()) return;
  const auto line =
      fmt::format("{} {}\n", err_style_.yellow("warning:"), quote_for_message(text, 1000));
  write_to_stderr(line, err_style_.enabled());
}

JsonWriter Session::open_document(std::string_view command, std::string_view status) {
  return cli::open_document(out_, command, status);
}

JsonWriter open_document(Output& out, std::string_view command, std::string_view status) {
  return open_document([&out](std::string_view text) { out.write(text); }, command, status);
}

JsonWriter open_document(JsonWriter::Sink sink, std::string_view command, std::string_view status) {
  JsonWriter json(std::move(sink));
  json.begin_object().field("format_version", "1.0");
  json.key("tool").begin_object();
  json.field("name", "shardtool").field("version", SHARDTOOL_VERSION).end_object();
  json.field("command", command).field("status", status);
  return json;
}

bool is_terminal(int fd) {
  return ::isatty(fd) == 1;
}

Style style_of(const GlobalArgs& global, int fd) {
  return Style(use_color(global.color.value_or(""), process_environment(), is_terminal(fd)));
}

}  // namespace shardtool::cli
