#include <string_view>

#include "cli/print/validate.h"
#include "lib/api/validate.h"

namespace shardtool::cli {

using engine::Outcome;
using engine::TierKind;

namespace {

void write_fault(JsonWriter& json, const engine::Fault& fault) {
  json.begin_object()
      .field("tier", to_text(fault.tier))
      .field("layer", fault.layer)
      .field("op", fault.op);
  json.field("value", fault.value).field("rank", fault.rank).list("tensors", fault.tensors);
  if (!fault.tensor.empty()) json.field("tensor", fault.tensor);
  json.key("index").begin_object().field("token", fault.token).field("feature", fault.feature);
  json.end_object().field("mismatches", fault.mismatches);
  if (!fault.diagnosis.empty()) json.field("diagnosis", fault.diagnosis);
  json.end_object();
}

void write_order(JsonWriter& json, const api::ValidateTier& tier) {
  json.field("proof", tier.is_proof()).field("reordered", tier.reordered);
  if (!tier.first) return;
  json.key("first");
  write_fault(json, *tier.first);
}

void write_shares(JsonWriter& json, const api::ValidateReport& report) {
  if (report.joined > 0) json.field("joined_shares", report.joined);
  if (!report.share) return;
  json.key("share").begin_object().field("number", report.share->number);
  json.field("of", report.share->of).field("layers", report.ran);
  json.key("missing").begin_array();
  for (const int number : report.missing) json.value(number);
  json.end_array().end_object();
}

void write_tiers(JsonWriter& json, const api::ValidateReport& report) {
  json.key("tiers").begin_array();
  for (const api::ValidateTier& tier : report.tiers) {
    json.begin_object().field("tier", number_of(tier.kind)).field("name", to_text(tier.kind));
    json.field("verdict", to_text(tier.outcome)).field("checked", tier.checked);
    json.field("mismatches", tier.mismatches).field("worst", tier.worst);
    if (is_ordered(tier.kind)) write_order(json, tier);
    if (tier.kind == TierKind::kNative) {
      json.field("type", report.native_type).field("rounding", tier.rounding);
    }
    json.end_object();
  }
  json.end_array();
}

void write_collectives(JsonWriter& json, const api::ValidateReport& report) {
  json.key("collectives").begin_array();
  for (const engine::CollectiveRow& row : report.collectives) {
    json.begin_object().field("tier", to_text(row.tier)).field("op", plan::to_string(row.move));
    json.field("axis", row.axis);
    json.field("predicted_count", row.predicted_count).field("counted", row.counted);
    json.field("predicted_bytes", row.predicted_elements * row.element_bytes);
    json.field("counted_bytes", row.counted_elements * row.element_bytes).end_object();
  }
  json.end_array();
}

void write_bytes(JsonWriter& json, const api::ValidateReport& report) {
  json.key("bytes").begin_object().field("against", byte_standard(report));
  json.field("parts", report.parts);
  json.field("compared", report.bytes->parts).field("differing", report.bytes->differing);
  json.key("different").begin_array();
  for (const engine::ComparedBytes::Part& part : report.bytes->different) {
    json.begin_object().field("tensor", part.tensor).field("rank", part.rank).end_object();
  }
  json.end_array().end_object();
}

void write_native(JsonWriter& json, const api::ValidateReport& report) {
  json.key("native_products").begin_object().list("libraries", report.libraries);
  json.field("by_library", report.native.library).field("by_kernels", report.native.kernels);
  json.end_object();
}

void write_problems(JsonWriter& json, const api::ValidateReport& report) {
  json.key("findings").begin_array();
  for (const check::Finding& finding : report.findings) {
    json.begin_object().field("id", check::rule_info(finding.rule).id);
    json.field("message", finding.message).field("file", finding.file);
    json.field("tensor", finding.tensor).field("rank", finding.rank);
    json.field("found", finding.found).field("expected", finding.expected);
    if (!finding.fix.empty()) json.field("help", finding.fix);
    json.end_object();
  }
  json.end_array();
  if (report.bytes) write_bytes(json, report);
  json.key("faults").begin_array();
  for (const engine::Fault& fault : report.faults) write_fault(json, fault);
  json.end_array().key("numbers").begin_array();
  for (const engine::OddWeight& odd : report.odd_weights) {
    json.begin_object().field("tensor", odd.tensor).field("rank", odd.is_shard ? odd.rank : -1);
    json.field("nan", odd.nan).field("infinite", odd.infinite).end_object();
  }
  json.end_array();
}

}  // namespace

void write_fields(JsonWriter& json, const api::ValidateReport& report) {
  json.field("verdict", to_text(report.outcome)).field("engine", report.engine);
  json.field("backend", report.backend).list("accelerators", report.accelerators);
  json.field("family", report.family).field("mesh", report.mesh).field("ranks", report.ranks);
  json.field("layers", report.layers).field("reference", report.has_reference);
  write_shares(json, report);
  write_tiers(json, report);
  write_problems(json, report);
  write_collectives(json, report);
  if (!report.libraries.empty()) write_native(json, report);
  json.key("coverage").begin_object().field("fraction", report.coverage / 100);
  json.list("untested", report.untested).end_object();
  json.field("undecidable_tokens", report.undecidable_tokens);
  json.field("reordered", report.reordered).field("digest", report.digest);
  json.list("not_proved", report.not_proved)
      .list("notes", report.notes)
      .field("bytes_read", report.bytes_read);
  json.field("seconds", report.seconds);
}

}  // namespace shardtool::cli
