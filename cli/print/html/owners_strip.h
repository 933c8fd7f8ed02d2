#pragma once

#include "cli/print/html/page.h"

namespace shardtool::cli {

/// Draws on which ranks a rule's tensors are, as a strip with a cell for those on the same ranks,
/// and as a table; nothing if all are on the same ranks. `rule` is an element of "rules".
void write_owners(Page& page, const JsonView& rule);

}  // namespace shardtool::cli
