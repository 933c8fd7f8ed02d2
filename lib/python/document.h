#pragma once

#include <string>
#include <string_view>

#include "cli/session.h"
#include "lib/base/json_writer.h"

namespace shardtool::python {

/// The document that the command prints with --json; `fields` writes those of the report.
template <class Fields>
std::string document(std::string_view command, bool is_ok, const Fields& fields) {
  std::string text;
  JsonWriter json = cli::open_document([&text](std::string_view part) { text += part; }, command,
                                       is_ok ? "ok" : "findings");
  fields(json);
  json.end_object();
  return text;
}

}  // namespace shardtool::python
