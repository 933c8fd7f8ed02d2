#pragma once

#include "cli/print/html/before_after.h"

namespace shardtool::cli {

/// Writes which rules cut their tensors otherwise: who holds what before and after, side by side.
/// Rules of two plans belong together if they have the same name or the same example. Both plans
/// need "rules"; without them a note says which files have them.
void write_layout_change(Page& page, const BeforeAfter& plans);

/// "tp=8", "dp=2, tp=4".
std::string mesh_text(const JsonView& plan);

}  // namespace shardtool::cli
