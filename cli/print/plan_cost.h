#pragma once

#include <vector>

#include "cli/print/json_writer.h"
#include "cli/session.h"
#include "lib/api/planning/plan_cost.h"

namespace shardtool::cli {

/// With a profile, what a forward pass costs: how long a prefill and a decode step take at least,
/// and on what, then every kind of collective.
void print_cost(Session& session, const api::CostReport& cost);
/// "comm" and, with a profile, "roofline"; or "unpriced" with the reason.
void write_cost(JsonWriter& json, const api::CostReport& cost);

/// What was measured of this machine.
void print_calibrated(Session& session, const plan::HardwareProfile& profile);

/// One line per profile.
void print_text(Session& session, const std::vector<plan::HardwareProfile>& profiles);
void write_fields(JsonWriter& json, const std::vector<plan::HardwareProfile>& profiles);

}  // namespace shardtool::cli
