#pragma once

#include <vector>

#include "cli/print/json_writer.h"
#include "shardtool/api/bench_io.h"
#include "shardtool/api/diff.h"
#include "shardtool/api/doctor.h"
#include "shardtool/api/explain.h"
#include "shardtool/api/graphs.h"
#include "shardtool/api/inspect.h"
#include "shardtool/api/presets.h"
#include "shardtool/api/transform.h"
#include "shardtool/base/error.h"

namespace shardtool::cli {

// The fields of each command's document, after the envelope. Their names are a contract, held by
// the schemas beside this folder: within format_version 1.x fields are only added.

void write_fields(JsonWriter& json, const api::TransformReport& report);
void write_fields(JsonWriter& json, const api::InspectReport& report);
void write_fields(JsonWriter& json, const api::DiffReport& report);
void write_fields(JsonWriter& json, const api::ExplainReport& report);
void write_fields(JsonWriter& json, const ErrorInfo& info);
void write_fields(JsonWriter& json, const api::PresetList& list);
void write_fields(JsonWriter& json, const std::vector<model::GraphHead>& graphs);
void write_fields(JsonWriter& json, const std::vector<api::DoctorCheck>& checks);
void write_fields(JsonWriter& json, const api::BenchIoReport& report);

/// "mesh", its axes from the slowest to the fastest.
void write_mesh(JsonWriter& json, const mesh::Mesh& mesh);

}  // namespace shardtool::cli
