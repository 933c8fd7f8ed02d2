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
  return {.name = "--html",
          .value = "FILE",
          .help =
              "also write the report as one HTML file with pictures, which opens offline and holds "
              "the JSON document; replaces the page of an earlier run",
          .target = &file};
}

/// Throws for the file of a page, if one is wanted: kOutputExists if something other than a page is
/// there, kWriteFailed if no file can be created there, kOutputAliasesInput if it is one of the
/// inputs or in the folder of one.
inline void require_page_place(const std::optional<std::string>& file,
                               std::span<const std::string> inputs) {
  if (!file) return;
  require_apart(*file, inputs);
  require_free_or_begun(*file, page_beginning());
}

/// Writes the page of a command's document, if one is wanted, in place of an earlier one. `fields`
/// writes the document's fields.
template <class Fields>
void write_page(const std::optional<std::string>& file, std::string_view command, Status status,
                Fields fields) {
  if (!file) return;
  std::string document;
  auto json = open_document([&document](std::string_view part) { document += part; }, command,
                            status == Status::kOk ? "ok" : "findings");
  fields(json);
  json.end_object();
  replace_answer(*file, page_beginning(), html_page(document));
}

}  // namespace shardtool::cli
