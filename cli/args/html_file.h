#pragma once

#include <optional>
#include <span>
#include <string>

#include "cli/answer_file.h"
#include "cli/command.h"
#include "cli/print/html/pages.h"
#include "cli/print/text.h"
#include "cli/session.h"

namespace shardtool::cli {

/// Argument of commands that show their document as a page.
inline Argument html_argument(std::optional<std::string>& file) {
  return {
      .name = "--html",
      .value = "FILE",
      .help = "also write a page with pictures: one file, offline, with its numbers as JSON inside",
      .target = &file};
}

/// Throws for the file of a page, if one is wanted: kOutputExists if it exists, kOutputAliasesInput
/// if it would be put into one of the checkpoints.
inline void require_free(const std::optional<std::string>& file,
                         std::span<const std::string> checkpoints) {
  if (!file) return;
  require_free(*file);
  require_apart(*file, checkpoints);
}

/// Writes the page of a command's document, if one is wanted. `fields` writes the document's
/// fields.
template <class Fields>
void write_page(const std::optional<std::string>& file, std::string_view command, Status status,
                Fields fields) {
  if (!file) return;
  std::string document;
  auto json = open_document([&document](std::string_view part) { document += part; }, command,
                            status == Status::kOk ? "ok" : "findings");
  fields(json);
  json.end_object();
  write_answer(*file, html_page(document));
}

}  // namespace shardtool::cli
