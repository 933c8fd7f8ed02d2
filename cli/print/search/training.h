#pragma once

#include "cli/print/table.h"
#include "cli/session.h"
#include "lib/api/planning/search/training_search.h"
#include "lib/base/json_writer.h"

namespace shardtool::cli {

/// Prints the best way to train, its bound, its stages, why the others lost, and what is excluded.
void print_text(Session& session, const api::TrainSearchOptions& options,
                const api::TrainSearchReport& report, TableFormat format);
/// Writes the fields of the document after the envelope.
void write_fields(JsonWriter& json, const api::TrainSearchOptions& options,
                  const api::TrainSearchReport& report);

}  // namespace shardtool::cli
