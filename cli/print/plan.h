#pragma once

#include <string>

#include "cli/session.h"
#include "lib/api/reports.h"
#include "lib/base/json_writer.h"

namespace shardtool::cli {

/// Prints the reshard traffic, the verdict, the memory of the fullest device, and layouts that
/// would fit.
void print_text(Session& session, const api::PlanReport& report);
/// Prints one table: the tensors of a reshard, else the devices.
void print_csv(Session& session, const api::PlanReport& report);
/// Returns what the text says, with the warnings, as a comment for a pull request.
std::string markdown(const api::PlanReport& report);
/// True for a value of a single device or tensor, of which there may be tens of thousands.
bool is_of_one(const api::PlanChange& change);
/// Prints one line per value that differs, without those of single devices and tensors; last "same"
/// or "differs".
void print_text(Session& session, const api::PlanDiff& diff);
/// Prints the same values as a table.
void print_csv(Session& session, const api::PlanDiff& diff);
/// Returns them as a comment for a pull request, the verdict first.
std::string markdown(const api::PlanDiff& diff);
/// Write the fields of the documents after the envelope.
void write_fields(JsonWriter& json, const api::PlanDiff& diff);
void write_fields(JsonWriter& json, const api::PlanReport& report);

}  // namespace shardtool::cli
