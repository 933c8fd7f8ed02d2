#pragma once

#include <string_view>

#include "cli/print/json.h"
#include "cli/print/text.h"
#include "cli/session.h"

namespace shardtool::cli {

/// Prints the report of a command as text or as a document.
template <class Report>
void answer(Session& session, std::string_view command, Status status, const Report& report) {
  if (!session.json()) return print_text(session, report);
  session.document(command, status, [&report](JsonWriter& json) { write_fields(json, report); });
}

}  // namespace shardtool::cli
