#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "lib/api/plan.h"

namespace shardtool::cli {

// Tables of a plan. With `exact` byte counts are plain numbers for other programs, else in units
// for people.

/// Memory of the fullest device by part.
Table parts_table(const api::MemoryReport& memory, bool exact);
/// Requests to object stores, of all ranks together, also with the output on the same store if that
/// copies something by itself, and of each rank alone; without `exact`, one row per run of equal
/// ranks.
Table reads_table(const api::SourceReads& reads, bool exact);
/// One row per device; without `exact`, one row per run of equal devices.
Table devices_table(const api::MemoryReport& memory, bool exact);
Table layouts_table(const std::vector<api::LayoutRow>& rows, bool exact);
/// Compares the direct plan with renumbered ranks and with gathering first.
Table methods_table(const plan::ReshardPlan& reshard, bool exact);
/// The tensors that move, sorted by name as in the reshard.
Table moves_table(const api::PlanReport& report, bool exact);
/// Senders, receivers and bytes of one tensor.
Table transfers_table(const plan::Traffic& traffic, bool exact);

/// Formats bytes as a number or in units.
std::string bytes_cell(i64 bytes, bool exact);
/// Formats ascending numbers as runs: "0-3,6".
std::string ranges_text(const std::vector<i64>& numbers);

}  // namespace shardtool::cli
