#pragma once

#include "cli/print/html/before_after.h"
#include "cli/print/html/page.h"

namespace shardtool::cli {

/// Writes the memory of every device as stacked bars with the budget as a line, and as a table.
/// Equal devices share a bar. `plan` is a document of `plan`.
void write_memory_bars(Page& page, const JsonView& plan);

/// Writes the same of two plans, and what changed on the fullest device of each.
void write_memory_change(Page& page, const BeforeAfter& plans);

}  // namespace shardtool::cli
