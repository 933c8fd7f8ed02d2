#pragma once

#include <vector>

#include "lib/api/reports.h"
#include "lib/base/error.h"
#include "lib/base/json_writer.h"

namespace shardtool::model {
struct GraphHead;
}

namespace shardtool::cli {

// Fields of each command's document after the envelope. Their names are a contract, checked by the
// JSON schemas: within format_version 1.x fields are only added.

void write_fields(JsonWriter& json, const api::TransformReport& report);
void write_fields(JsonWriter& json, const api::FinishReport& report);
void write_fields(JsonWriter& json, const api::InspectReport& report);
void write_fields(JsonWriter& json, const api::DiffReport& report);
void write_fields(JsonWriter& json, const api::ExplainReport& report);
void write_fields(JsonWriter& json, const api::AxisReport& report);
void write_fields(JsonWriter& json, const ErrorInfo& info);
void write_fields(JsonWriter& json, std::span<const ErrorInfo> errors);
void write_fields(JsonWriter& json, const api::PresetList& list);
void write_fields(JsonWriter& json, const std::vector<model::GraphHead>& graphs);
void write_fields(JsonWriter& json, const std::vector<api::LayoutInfo>& layouts);
void write_fields(JsonWriter& json, const std::vector<api::DoctorCheck>& checks);
void write_fields(JsonWriter& json, const api::BenchIoReport& report);

/// Writes "rules": what a picture shows of every rule.
void write_rules(JsonWriter& json, const std::vector<api::DrawnRule>& rules);

}  // namespace shardtool::cli
