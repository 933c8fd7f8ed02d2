#pragma once

#include "cli/print/html/page.h"

namespace shardtool::cli {

/// Writes who holds which part of a rule's example: its facts and its holders below the name of the
/// rule. `rule` is an element of "rules" of a document.
void write_tensor_grid(Page& page, const JsonView& rule, i64 devices);

/// Writes the number and bytes of the rule's tensors, and name, type and shape of its example.
void write_rule_facts(Page& page, const JsonView& rule);

/// True if every one of several devices holds all tensors of the rule whole.
bool is_whole(const JsonView& rule, i64 devices);

/// Writes where the tensors are, if on different ranks, and a drawing of the example's two cut
/// axes, with a cell per part, and a table of all parts. Shards that several ranks hold are
/// hatched, padding is dotted, sections (q, k, v) are named, tinted and divided by dashed lines.
void write_holders(Page& page, const JsonView& rule, i64 devices);

}  // namespace shardtool::cli
