#pragma once

#include "cli/print/html/page.h"

namespace shardtool::cli {

/// True if answers of a search's document have tokens after the first, and so a TPOT.
bool has_later_tokens(const JsonView& search);

/// Writes what the rows of a search offer: tokens per second of a client to the right, of a device
/// upwards. The Pareto front is a line with numbered points, the optimum has a ring, and rows that
/// a limit excludes are crosses. `search` is a document of `plan search` with rows.
void write_front_chart(Page& page, const JsonView& search);

}  // namespace shardtool::cli
