#include "cli/print/search/search.h"

namespace shardtool::cli {
namespace {

constexpr double kUsPerMs = 1e3;
constexpr double kSecondsPerHour = 3600;

void write_ms(JsonWriter& json, std::string_view name, double us) {
  json.key(name).exact(us / kUsPerMs);
}

void write_layout(JsonWriter& json, const api::ServingLayout& layout) {
  json.field("name", to_string(layout)).field("devices", layout.devices());
  json.field("dp", layout.dp).field("pp", layout.pp).field("ep", layout.ep);
  json.field("tp", layout.tp).field("expert_parallel", layout.expert_parallel);
}

void write_parts(JsonWriter& json, const api::AnswerParts& parts) {
  json.key("answer").begin_object();
  for (const auto& part : api::kAnswerParts) write_ms(json, part.field, parts.*part.member);
  json.end_object();
}

/// Writes null for a time that an answer does not have.
void write_ms(JsonWriter& json, std::string_view name, const std::optional<double>& us) {
  us ? write_ms(json, name, *us) : void(json.key(name).null());
}

void write_service(JsonWriter& json, const plan::Service& service, const plan::Offer& offer) {
  write_ms(json, "ttft_ms", service.ttft_us);
  write_ms(json, "tpot_ms", offer.tpot_us);
  json.key("ttft").begin_object();
  write_ms(json, "prompt_ms", service.prompt_us);
  write_ms(json, "host_ms", service.request_us);
  write_ms(json, "turn_ms", service.turn_us);
  write_ms(json, "queue_ms", service.queue_us);
  json.end_object().key("tpot");
  if (!offer.tpot_us) return void(json.null());
  json.begin_object();
  write_ms(json, "step_ms", service.step_us);
  write_ms(json, "host_ms", service.host_us);
  write_ms(json, "other_prompts_ms", service.others_us);
  json.end_object();
}

void write_offer(JsonWriter& json, const plan::Offer& offer) {
  write_ms(json, "answer_ms", offer.answer_us);
  json.key("tokens_per_s").exact(offer.tokens_per_s);
  json.key("tokens_per_s_per_device").exact(plan::value_of(offer, plan::Objective::kThroughput));
  json.key("tokens_per_s_per_user").exact(plan::value_of(offer, plan::Objective::kUser));
  if (offer.price_per_s == 0) return;
  json.key("price_per_hour").exact(offer.price_per_s * kSecondsPerHour);
  json.key("price_per_million_tokens").exact(-plan::value_of(offer, plan::Objective::kCost));
}

void write_move(JsonWriter& json, const api::LayoutMove& move) {
  json.key("move").begin_object();
  json.field("bytes_total", move.bytes_total).field("bytes_moved", move.bytes_moved);
  json.field("bytes_kept", move.bytes_kept);
  if (move.renumbered) json.field("renumbered_bytes_moved", *move.renumbered);
  json.field("peak_bytes", move.peak_bytes);
  write_ms(json, "time_ms", move.us);
  json.end_object();
}

void write_model(JsonWriter& json, const api::SearchedModel& model) {
  json.field("source", model.source);
  if (model.dtype) json.field("dtype", to_string(*model.dtype));
}

void write_row(JsonWriter& json, const api::ServingRow& row) {
  json.begin_object();
  write_layout(json, row.layout);
  write_model(json, row.model);
  if (!row.kv_dtype.empty()) json.field("kv_dtype", row.kv_dtype);
  json.field("sequence_parallel", row.sequence_parallel).field("concurrency", row.concurrency);
  json.key("devices_per_client").exact(row.devices_per_client);
  if (const auto cap = row.cap()) json.field("max_num_seqs", *cap);
  json.field("concurrency_that_fits", row.fits).field("weights_bytes", row.weights);
  json.field("total_bytes", row.total).field("sequence_bytes", row.per_sequence);
  write_service(json, row.service, row.offer);
  write_offer(json, row.offer);
  write_parts(json, row.parts);
  if (row.move) write_move(json, *row.move);
  if (row.fallback) {
    json.key("fallback").begin_object();
    write_layout(json, *row.fallback);
    json.end_object();
  }
  json.end_object();
}

void write_limits(JsonWriter& json, const plan::Limits& limits) {
  json.key("limits").begin_object();
  if (limits.ttft_us) write_ms(json, "ttft_ms", *limits.ttft_us);
  if (limits.tpot_us) write_ms(json, "tpot_ms", *limits.tpot_us);
  if (limits.price_per_s) json.key("price_per_hour").exact(*limits.price_per_s * kSecondsPerHour);
  json.end_object();
}

void write_losses(JsonWriter& json, std::string_view name, const std::vector<api::Loss>& losses) {
  json.key(name).begin_array();
  for (const api::Loss& loss : losses) {
    json.begin_object().field("row", static_cast<i64>(loss.row));
    if (!loss.reason.empty()) json.field("by", loss.by).field("reason", loss.reason);
    json.end_object();
  }
  json.end_array();
}

void write_search(JsonWriter& json, const api::SearchReport& report) {
  json.key("bound").exact(report.bound);
  if (report.optimum) {
    json.key("value").exact(report.value);
    json.field("optimum", static_cast<i64>(*report.optimum));
  }
  if (report.runner_up) json.field("runner_up", static_cast<i64>(*report.runner_up));
  write_losses(json, "losses", report.losses);
  json.key("binds").begin_array();
  for (const api::Binding& binding : report.bindings) {
    json.begin_object().field("constraint", binding.constraint);
    if (binding.row) json.field("row", static_cast<i64>(*binding.row));
    json.field("layout", binding.layout);
    if (binding.gain > 0) json.field("gain", binding.gain);
    json.field("reason", binding.reason).end_object();
  }
  json.end_array();
  write_losses(json, "front", report.front);
}

}  // namespace

void write_fields(JsonWriter& json, const api::SearchOptions& options,
                  const api::SearchReport& report) {
  json.list("sources", options.plan.sources).field("profile", options.plan.hardware->name);
  json.field("prompt_len", options.prompt_len).field("output_len", options.answer_len);
  json.key("prefix_hit").exact(options.prefix_hit);
  if (options.request_rate) json.key("request_rate").exact(*options.request_rate);
  json.field("survive", options.survive);
  json.field("objective", to_string(options.objective));
  write_limits(json, options.limits);
  json.field("tpot_band", plan::kTpotBand);
  if (options.from) json.field("from", *options.from);
  write_search(json, report);
  json.key("rows").begin_array();
  for (const api::ServingRow& row : report.rows) write_row(json, row);
  json.end_array().key("refused").begin_array();
  for (const api::RefusedLayout& refused : report.refused) {
    json.begin_object();
    write_layout(json, refused.layout);
    write_model(json, refused.model);
    json.field("constraint", refused.constraint).field("reason", refused.reason).end_object();
  }
  json.end_array().list("warnings", report.warnings);
}

}  // namespace shardtool::cli
