#pragma once

#include "cli/print/html/page.h"

namespace shardtool::cli {

/// Writes who sends how much to whom, senders as rows and receivers as columns, with a line at
/// every node's border; and the pairs with the most bytes as a table. `reshard` is that of a plan's
/// document, with "pairs" and "node_size".
void write_pairs(Page& page, const JsonView& reshard);

/// Writes the weights of the fullest device by layer and class as a table with shaded cells. Equal
/// layers share a row. `plan` is a plan's document with "layers".
void write_layers(Page& page, const JsonView& plan);

}  // namespace shardtool::cli
