#pragma once

#include "cli/print/html/page.h"

namespace shardtool::cli {

/// Writes who holds which part of a rule's example: a drawing of its two cut axes, with a cell per
/// part, and a table of all parts. Shards that several ranks hold are hatched, padding is dotted,
/// sections (q, k, v) are divided by dashed lines. `rule` is an element of "rules" of a document.
void write_tensor_grid(Page& page, const JsonView& rule, i64 devices);

}  // namespace shardtool::cli
