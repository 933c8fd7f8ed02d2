#pragma once

#include <vector>

#include "cli/print/report/report_writer.h"
#include "cli/session.h"
#include "lib/api/planning/cost_report.h"
#include "lib/base/json_writer.h"

namespace shardtool::cli {

/// Prints the cost of a forward pass if there is a profile: lower bounds of prefill and decode
/// times with their bottleneck, then every kind of collective.
void print_cost(ReportWriter& out, const api::CostReport& cost);
/// Prints, or writes as "comm", the collectives of weights in a step of training; nothing if there
/// are none.
void print_training_comm(ReportWriter& out, const std::vector<model::CommRow>& rows, bool timed);
void write_training_comm(JsonWriter& json, const std::vector<model::CommRow>& rows, bool timed);
/// Prints what a server would deliver at best if the model is priced: time to first token, tokens
/// per second, and with a price per hour of all devices the price of a million output tokens.
void print_service(ReportWriter& out, const api::CostReport& cost, double price_per_hour);
/// Writes these numbers as "service"; nothing if the model is not priced.
void write_service(JsonWriter& json, const api::CostReport& cost, double price_per_hour);
/// Writes "comm" and, with a profile, "roofline"; or "unpriced" with the reason.
void write_cost(JsonWriter& json, const api::CostReport& cost);

/// Prints the measurements of this machine.
void print_calibrated(Session& session, const plan::HardwareProfile& profile);

/// Prints one line per profile.
void print_text(Session& session, const std::vector<plan::HardwareProfile>& profiles);
void write_fields(JsonWriter& json, const std::vector<plan::HardwareProfile>& profiles);

}  // namespace shardtool::cli
