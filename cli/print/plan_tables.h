#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "lib/api/plan.h"

namespace shardtool::cli {

// The tables of a plan. Byte counts are exact numbers where `exact`, for other programs; else in
// units, for people.

/// What the fullest device holds, part by part.
Table parts_table(const api::MemoryReport& memory, bool exact);
/// One row per device, or per run of devices that are alike when not `exact`.
Table devices_table(const api::MemoryReport& memory, bool exact);
Table layouts_table(const std::vector<api::LayoutRow>& rows, bool exact);
/// The direct plan beside renumbered ranks and gathering first.
Table methods_table(const plan::ReshardPlan& reshard, bool exact);
/// What every device sends, receives and holds at most.
Table ranks_table(const plan::ReshardPlan& reshard, bool exact);
/// The tensors that move, in the reshard's order of names.
Table moves_table(const api::PlanReport& report, bool exact);
/// Who sends what of one tensor to whom.
Table transfers_table(const plan::Traffic& traffic, bool exact);

/// Bytes as a number or in units.
std::string bytes_cell(i64 bytes, bool exact);
/// "0-3,6": ascending numbers as runs.
std::string ranges_text(const std::vector<i64>& numbers);

}  // namespace shardtool::cli
