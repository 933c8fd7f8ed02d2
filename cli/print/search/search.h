#pragma once

#include "cli/session.h"
#include "lib/api/plan_search.h"
#include "lib/base/json_writer.h"

namespace shardtool::cli {

/// Prints the best layout, its bound and runner-up, what keeps a better one away, and the best row
/// of every layout.
void print_text(Session& session, const api::SearchOptions& options,
                const api::SearchReport& report);
/// Prints the same as a comment in Markdown, with the rows of the Pareto front.
void print_markdown(Session& session, const api::SearchOptions& options,
                    const api::SearchReport& report);
/// Writes the fields of the document after the envelope.
void write_fields(JsonWriter& json, const api::SearchOptions& options,
                  const api::SearchReport& report);

}  // namespace shardtool::cli
