#include "cli/print/json.h"

#include "lib/api/axis.h"
#include "lib/api/bench_io.h"
#include "lib/api/catalogue/layouts.h"
#include "lib/api/catalogue/presets.h"
#include "lib/api/diff.h"
#include "lib/api/doctor.h"
#include "lib/api/explain.h"
#include "lib/api/finish.h"
#include "lib/api/inspect.h"
#include "lib/api/transform.h"
#include "lib/format/manifest/manifest.h"
#include "lib/model/graph/graph_head.h"

namespace shardtool::cli {
namespace {

void write_shards(JsonWriter& json, const std::vector<api::InspectShard>& shards) {
  json.key("shards").begin_array();
  for (const auto& shard : shards) {
    json.begin_object().field("rank", shard.rank);
    json.list("shape", index::local_shape(shard.region)).field("bytes", shard.bytes);
    if (!shard.file.empty()) json.field("file", shard.file);
    json.key("slices").begin_array();
    for (const auto& axis : shard.region) json.raw(format::slices_json(axis));
    json.end_array().end_object();
  }
  json.end_array();
}

void write_sections(JsonWriter& json, const std::vector<api::InspectSection>& sections) {
  if (sections.empty()) return;
  json.key("sections").begin_array();
  for (const api::InspectSection& section : sections) {
    json.begin_object().field("begin", section.begin);
    if (!section.name.empty()) json.field("name", section.name);
    json.end_object();
  }
  json.end_array();
}

void write_tensor(JsonWriter& json, const api::InspectTensor& tensor, bool placed) {
  json.begin_object().field("name", tensor.name).field("dtype", tensor.dtype);
  json.list("shape", tensor.shape).field("bytes", tensor.bytes);
  json.field("file", tensor.file).field("offset", tensor.offset);
  if (placed) {
    json.field("rule", tensor.rule).field("strategy", tensor.strategy);
    if (!tensor.convention.empty()) json.field("convention", tensor.convention);
    json.key("axes").begin_array();
    for (const auto& axis : tensor.axes) {
      json.begin_object().field("logical", axis.logical);
      json.field("expression", axis.expression);
      write_sections(json, axis.sections);
      json.end_object();
    }
    json.end_array();
    write_shards(json, tensor.shards);
  }
  json.end_object();
}

void write_checkpoint(JsonWriter& json, const api::InspectReport& report) {
  json.key("checkpoint").begin_object();
  json.field("path", report.path).field("format", report.format).field("files", report.files);
  json.field("tensors", report.tensors).field("parameters", report.parameters);
  json.field("bytes", report.bytes);
  if (!report.model_type.empty()) json.field("model_type", report.model_type);
  if (!report.architecture.empty()) json.field("architecture", report.architecture);
  if (!report.preset.empty()) json.field("preset", report.preset);
  json.key("config").begin_object();
  for (const auto& [name, value] : report.config) json.field(name, value);
  json.end_object().end_object();
}

void write_groups(JsonWriter& json, std::string_view key,
                  const std::vector<api::InspectGroup>& groups) {
  json.key(key).begin_array();
  for (const auto& group : groups) {
    json.begin_object().field("name", group.name).field("tensors", group.tensors);
    json.field("bytes", group.bytes).end_object();
  }
  json.end_array();
}

void write_entries(JsonWriter& json, const std::vector<api::InspectEntry>& entries) {
  json.key("others").begin_array();
  for (const auto& entry : entries) {
    json.begin_object().field("name", entry.name);
    if (!entry.what.empty()) json.field("what", entry.what);
    json.end_object();
  }
  json.end_array();
}

void write_plan(JsonWriter& json, const api::TransformPlan& plan) {
  json.key("plan").begin_object();
  json.field("tensors", plan.tensors).field("split", plan.split);
  json.field("replicated", plan.replicated).field("dropped", plan.dropped);
  if (!plan.mapping.empty()) json.list("mapping", plan.mapping);
  json.field("ranks", plan.ranks).field("files", plan.files);
  json.field("bytes_in", plan.bytes_in).field("bytes_out", plan.bytes_out);
  json.field("replicated_bytes", plan.replicated_bytes);
  json.field("padding_bytes", plan.padding_bytes).key("uneven").begin_array();
  for (const auto& uneven : plan.uneven) {
    json.begin_object().field("axis", uneven.axis).list("sizes", uneven.sizes);
    json.field("example_tensor", uneven.example_tensor).field("tensors", uneven.tensors);
    json.end_object();
  }
  json.end_array().key("alterations").begin_array();
  for (const auto& alteration : plan.alterations) {
    json.begin_object().field("what", alteration.what);
    json.field("example_tensor", alteration.example_tensor).field("tensors", alteration.tensors);
    json.end_object();
  }
  json.end_array();
  if (const auto& not_boxes = plan.not_boxes) {
    json.key("not_boxes").begin_object().field("tensor", not_boxes->tensor);
    json.field("reason", not_boxes->reason).end_object();
  }
  if (const auto& shares = plan.shares) {
    json.key("shares").begin_object().field("processes", shares->shares);
    json.field("least", shares->least).field("most", shares->most).end_object();
  }
  if (const auto& requests = plan.requests) {
    json.key("store").begin_object().field("requests", requests->requests);
    json.field("bytes", requests->bytes);
    json.field("read_amplification", requests->read_amplification);
    json.field("copies", requests->copies).field("copied_bytes", requests->copied_bytes);
    json.end_object();
  }
  json.end_object();
}

void write_counts(JsonWriter& json, const kernels::CastCounts& counts) {
  json.field("values", counts.values).field("exact", counts.is_exact());
  json.field("rounded", counts.rounded).field("overflowed", counts.overflowed);
  json.field("underflowed", counts.underflowed).field("nan", counts.nan);
}

void write_dequantized(JsonWriter& json, const api::TransformDequantize& unpacked) {
  json.key("dequantized").begin_object().field("scheme", unpacked.scheme);
  json.field("to", to_string(unpacked.to)).field("weights", unpacked.weights);
  json.field("stored", unpacked.stored).list("left_out", unpacked.left_out);
  if (unpacked.counts) write_counts(json, *unpacked.counts);
  if (!unpacked.overflow_example.empty()) json.field("overflow_example", unpacked.overflow_example);
  json.end_object();
}

void write_cast(JsonWriter& json, const api::TransformCast& cast) {
  json.key("cast").begin_object().field("to", to_string(cast.to)).key("from").begin_array();
  for (const Dtype dtype : cast.from) json.value(to_string(dtype));
  json.end_array().field("tensors", cast.tensors).field("kept", cast.kept);
  if (cast.counts) write_counts(json, *cast.counts);
  if (!cast.overflow_example.empty()) json.field("overflow_example", cast.overflow_example);
  json.end_object();
}

void write_rule(JsonWriter& json, const api::DrawnRule& rule) {
  json.begin_object().field("tensors", rule.tensors).field("bytes", rule.bytes);
  json.field("layouts", rule.layouts).key("example");
  write_tensor(json, rule.example, true);
  if (!rule.owners.empty()) {
    json.key("owners").begin_array();
    for (const api::DrawnOwners& owners : rule.owners) {
      json.begin_object().list("ranks", owners.ranks).field("tensors", owners.tensors);
      json.field("first", owners.first).end_object();
    }
    json.end_array();
  }
  json.end_object();
}

void write_share(JsonWriter& json, const api::TransformShare& share, const std::string& output) {
  json.key("share").begin_object().field("number", share.share.number);
  json.field("of", share.share.of).field("tensors", share.tensors).field("bytes", share.bytes);
  json.field("seconds", share.seconds).field("bytes_per_second", share.bytes_per_second);
  json.field("peak_rss_bytes", share.peak_rss_bytes).field("published", share.published);
  json.list("missing", share.missing).field("output", output).end_object();
}

}  // namespace

void write_rules(JsonWriter& json, const std::vector<api::DrawnRule>& rules) {
  json.key("rules").begin_array();
  for (const api::DrawnRule& rule : rules) write_rule(json, rule);
  json.end_array();
}

void write_fields(JsonWriter& json, const api::TransformReport& report) {
  write_plan(json, report.plan);
  if (report.moved) {
    json.key("moved").begin_object().field("bytes_moved", report.moved->bytes_moved);
    json.field("bytes_kept", report.moved->bytes_kept).end_object();
  }
  if (report.dequantized) write_dequantized(json, *report.dequantized);
  if (report.cast) write_cast(json, *report.cast);
  json.list("warnings", report.warnings);
  if (report.was_complete) json.field("was_complete", true);
  if (report.bytes_verified) json.field("bytes_verified", *report.bytes_verified);
  if (const auto& resumed = report.resumed) {
    json.key("resumed").begin_object().field("tensors", resumed->tensors);
    json.field("bytes", resumed->bytes).field("damaged", resumed->damaged).end_object();
  }
  if (report.share) write_share(json, *report.share, report.output);
  if (!report.written) return;
  const auto& written = *report.written;
  json.key("written").begin_object().field("bytes", written.bytes).field("files", written.files);
  json.field("shared_bytes", written.shared_bytes);
  if (written.copied_by_store > 0) json.field("copied_by_store", written.copied_by_store);
  json.field("seconds", written.seconds).field("bytes_per_second", written.bytes_per_second);
  json.field("peak_rss_bytes", written.peak_rss_bytes).end_object();
  json.field("replicas_compared", report.replicas_compared).field("output", report.output);
}

void write_fields(JsonWriter& json, const api::FinishReport& report) {
  if (report.was_complete) json.field("was_complete", true);
  if (report.shares > 0) json.field("shares", report.shares);
  if (report.bytes_verified) json.field("bytes_verified", *report.bytes_verified);
  json.field("tensors", report.tensors).field("files", report.files).field("bytes", report.bytes);
  json.field("output", report.output);
  if (!report.warnings.empty()) json.list("warnings", report.warnings);
}

void write_fields(JsonWriter& json, const api::InspectReport& report) {
  write_checkpoint(json, report);
  write_groups(json, "dtypes", report.dtypes);
  write_groups(json, "modules", report.modules);
  if (report.mesh) {
    write_mesh(json, *report.mesh);
    json.list("bytes_per_rank", report.bytes_per_rank);
  }
  if (!report.rules.empty()) write_rules(json, report.rules);
  json.key("tensors").begin_array();
  for (const auto& tensor : report.list) write_tensor(json, tensor, report.mesh.has_value());
  json.end_array();
  if (!report.others.empty()) write_entries(json, report.others);
  json.list("warnings", report.warnings);
}

void write_fields(JsonWriter& json, const api::DiffReport& report) {
  json.key("tensors").begin_object();
  json.field("common", report.common).list("only_a", report.only_a).list("only_b", report.only_b);
  json.key("changed").begin_array();
  for (const auto& change : report.changed) {
    json.begin_object().field("name", change.name).field("what", change.what);
    if (change.first_difference >= 0) {
      json.field("bytes_differing", change.bytes_differing);
      json.field("first_difference", change.first_difference);
    }
    json.end_object();
  }
  json.end_array().field("identical", report.identical);
  if (report.cast > 0) json.field("cast", report.cast);
  if (report.dequantized > 0) json.field("dequantized", report.dequantized);
  json.end_object();
  if (!report.warnings.empty()) json.list("warnings", report.warnings);
  json.field("bytes_read", report.bytes_read).field("equal", report.equal);
}

namespace {

void write_axis(JsonWriter& json, const api::ExplainAxis& axis) {
  json.begin_object().field("logical", axis.logical).field("expression", axis.expression);
  json.field("over", axis.over).field("extent", axis.extent);
  json.field("physical_size", axis.physical_size).field("rounded", axis.rounded).end_object();
}

void write_part(JsonWriter& json, const api::StoredPart& part) {
  json.key("part_of").begin_object().field("tensor", part.tensor).list("at", part.at);
  json.field("axis", static_cast<i64>(part.axis)).key("ranges").begin_array();
  for (const index::Piece& piece : part.along.pieces()) {
    json.begin_array().value(piece.local).value(piece.local_end()).end_array();
  }
  json.end_array().end_object();
}

}  // namespace

void write_fields(JsonWriter& json, const api::AxisReport& report) {
  write_mesh(json, report.mesh);
  json.key("axis");
  write_axis(json, report.axis);
  json.list("slices", report.slices);
}

void write_fields(JsonWriter& json, const api::ExplainReport& report) {
  write_mesh(json, report.mesh);
  if (report.part_of) write_part(json, *report.part_of);
  json.key("tensor");
  write_tensor(json, report.tensor, true);
  json.field("rule", report.rule).field("rule_place", report.rule_place).field("why", report.why);
  json.list("alterations", report.alterations);
  json.key("axes").begin_array();
  for (const auto& axis : report.axes) write_axis(json, axis);
  json.end_array();
}

void write_fields(JsonWriter& json, std::span<const ErrorInfo> errors) {
  json.key("errors").begin_array();
  for (const ErrorInfo& info : errors) {
    json.begin_object();
    write_fields(json, info);
    json.end_object();
  }
  json.end_array();
}

void write_fields(JsonWriter& json, const ErrorInfo& info) {
  json.field("code", info.id).field("exit", info.exit_status);
  json.field("title", info.title).field("explanation", info.explanation);
}

void write_fields(JsonWriter& json, const api::PresetList& list) {
  json.key("presets").begin_array();
  for (const auto& preset : list.presets) {
    json.begin_object().field("name", preset.name).field("description", preset.description);
    json.list("architectures", preset.architectures).list("model_types", preset.model_types);
    json.end_object();
  }
  json.end_array().key("families").begin_array();
  for (const auto& family : list.families) {
    json.begin_object().field("name", family.name).field("description", family.description);
    json.list("quantization", family.quantization).end_object();
  }
  json.end_array();
}

void write_fields(JsonWriter& json, const std::vector<model::GraphHead>& graphs) {
  json.key("graphs").begin_array();
  for (const auto& graph : graphs) {
    json.begin_object().field("name", graph.name).field("description", graph.description);
    json.list("model_types", graph.model_types).list("extends", graph.extends).end_object();
  }
  json.end_array();
}

void write_fields(JsonWriter& json, const std::vector<api::LayoutInfo>& layouts) {
  json.key("layouts").begin_array();
  for (const auto& layout : layouts) {
    json.begin_object().field("name", layout.label).field("description", layout.description);
    json.list("files", layout.files).key("models").begin_array();
    for (const auto& models : layout.models) {
      json.begin_object().list("model_types", models.model_types);
      json.field("proof", models.proof).end_object();
    }
    json.end_array().list("experimental", layout.experimental);
    json.list("refused", layout.refused).end_object();
  }
  json.end_array();
}

void write_fields(JsonWriter& json, const std::vector<api::DoctorCheck>& checks) {
  json.key("checks").begin_array();
  for (const auto& check : checks) {
    json.begin_object().field("name", check.name).field("value", check.value);
    json.field("ok", check.ok).field("advice", check.advice).end_object();
  }
  json.end_array();
}

void write_fields(JsonWriter& json, const api::BenchIoReport& report) {
  json.field("folder", report.folder).field("bytes", report.bytes);
  json.field("rounds", report.rounds).field("direct_io", report.direct_io);
  json.key("measures").begin_array();
  for (const auto& measure : report.measures) {
    json.begin_object().field("name", measure.name).list("seconds", measure.seconds);
    json.list("cpu_seconds", measure.cpu_seconds);
    json.field("bytes_per_second", measure.bytes_per_second);
    json.field("cpu_seconds_per_gigabyte", measure.cpu_seconds_per_gigabyte);
    json.field("warm_split", measure.warm_split).field("cold_split", measure.cold_split);
    json.end_object();
  }
  json.end_array();
}

}  // namespace shardtool::cli
