#pragma once

#include "cli/print/html/page.h"

namespace shardtool::cli {

/// Writes the memory of every device as stacked bars with the budget as a line, and as a table.
/// Equal devices share a bar. `plan` is a document of `plan`.
void write_memory_bars(Page& page, const JsonView& plan);

}  // namespace shardtool::cli
