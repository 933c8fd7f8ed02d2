#include "cli/print/json.h"
#include "cli/print/plan_ops.h"

namespace shardtool::cli {
namespace {

/// Writes placements by mesh axis: {"tp": "S(2)"}.
void write_placements(JsonWriter& json, std::string_view name, const mesh::Mesh& mesh,
                      const std::vector<plan::Placement>& on) {
  json.key(name).begin_object();
  for (size_t a = 0; a < on.size(); ++a) json.field(mesh.axes()[a].name, to_string(on[a]));
  json.end_object();
}

void write_move(JsonWriter& json, const api::OpMove& move, bool timed) {
  json.begin_object().field("operand", move.operand).field("move", move.move);
  json.field("axes", move.axes);
  if (move.to_axis >= 0) json.field("to_axis", move.to_axis);
  json.field("bytes", move.bytes).field("payload_bytes", move.payload);
  if (timed) json.field("time_us", move.us);
  json.end_object();
}

void write_candidate(JsonWriter& json, const plan::CandidateLine& line) {
  json.begin_object().field("axis", line.axis).list("operands", line.operands);
  json.field("result", line.result).field("status", line.status.empty() ? "dearer" : line.status);
  if (line.status != "infeasible") json.field("bytes", line.bytes).list("insert", line.insert);
  if (!line.why.empty()) json.field("why", line.why);
  json.end_object();
}

void write_op(JsonWriter& json, const api::OpLine& line, const mesh::Mesh& mesh, bool timed) {
  json.begin_object().field("op", line.op).field("makes", line.made);
  json.key("operands").begin_array();
  for (const api::OpOperand& operand : line.operands) {
    json.begin_object().field("name", operand.name).list("shape", operand.shape);
    write_placements(json, "on", mesh, operand.on);
    write_placements(json, "needs", mesh, operand.needs);
    json.end_object();
  }
  json.end_array();
  write_placements(json, "result", mesh, line.result);
  json.key("moves").begin_array();
  for (const api::OpMove& move : line.moves) write_move(json, move, timed);
  json.end_array().field("bytes", line.bytes);
  if (timed) json.field("time_us", line.us);
  json.key("candidates").begin_array();
  for (const plan::CandidateLine& candidate : line.candidates) write_candidate(json, candidate);
  json.end_array().end_object();
}

void write_comparison(JsonWriter& json, const api::OpComparison& comparison) {
  json.key("comparison").begin_object().field("bytes", comparison.chosen_bytes);
  json.field("optimum_bytes", comparison.optimum_bytes).key("ops").begin_array();
  for (const api::OpDifference& op : comparison.ops) {
    json.begin_object().field("block", op.block).list("layers", op.layers).field("op", op.op);
    json.field("makes", op.made).field("chosen", op.chosen).field("optimum", op.optimum);
    json.field("bytes", op.chosen_bytes).field("optimum_bytes", op.optimum_bytes).end_object();
  }
  json.end_array().end_object();
}

}  // namespace

void write_fields(JsonWriter& json, const api::OpPlanReport& report) {
  const bool timed = !report.profile.empty();
  json.field("source", report.source).field("family", report.family);
  write_mesh(json, report.mesh);
  json.field("batch", report.batch).field("prompt_len", report.prompt_len);
  json.field("solver", report.solver).field("generation", report.generation);
  if (timed) json.field("profile", report.profile);
  json.key("layers").begin_array();
  for (const api::OpLayers& layers : report.layers) {
    json.begin_object().field("block", layers.block).list("layers", layers.numbers);
    json.field("bytes", layers.bytes);
    if (timed) json.field("time_us", layers.us);
    json.key("ops").begin_array();
    for (const api::OpLine& line : layers.ops) write_op(json, line, report.mesh, timed);
    json.end_array().end_object();
  }
  json.end_array().key("collectives").begin_array();
  for (const api::OpCollective& row : report.collectives) {
    json.begin_object().field("axis", row.axes).field("op", row.op).field("count", row.count);
    json.field("payload_bytes", row.payload).field("bytes", row.bytes);
    if (timed) json.field("time_us", row.us);
    json.end_object();
  }
  json.end_array().field("bytes", report.bytes);
  if (timed) json.field("time_us", report.us);
  if (report.comparison) write_comparison(json, *report.comparison);
  json.list("warnings", report.warnings);
}

}  // namespace shardtool::cli
