#include "cli/print/json.h"
#include "cli/print/plan.h"
#include "cli/print/plan_cost.h"
#include "lib/api/plan.h"
#include "lib/api/planning/plan_diff.h"

namespace shardtool::cli {
namespace {

void write_device(JsonWriter& json, const api::MemoryReport& memory,
                  const api::PlanDevice& device) {
  json.begin_object().field("rank", device.rank).field("weights_bytes", device.weights);
  json.key("weights_by_class").begin_object();
  for (size_t c = 0; c < memory.classes.size(); ++c) {
    json.field(memory.classes[c], device.by_class[c]);
  }
  json.end_object().field("replicated_bytes", device.replicated);
  json.field("padding_bytes", device.padding).field("kv_bytes_per_token", device.kv_per_token);
  json.field("kv_bytes", device.kv);
  if (device.cross_kv > 0) json.field("cross_kv_bytes", device.cross_kv);
  if (device.states > 0) json.field("state_bytes", device.states);
  if (device.gathered > 0) json.field("gathered_bytes", device.gathered);
  if (device.kv_capacity_tokens) json.field("kv_capacity_tokens", *device.kv_capacity_tokens);
  json.field("activation_bytes", device.activations).field("training_bytes", device.training);
  json.field("overhead_bytes", device.overhead).field("total_bytes", device.total);
  if (memory.budget > 0) json.field("budget_bytes", memory.budget);
  if (device.fits) json.field("fits", *device.fits);
  json.end_object();
}

void write_rows(JsonWriter& json, const char* name, const std::vector<api::LayoutRow>& rows) {
  if (rows.empty()) return;
  json.key(name).begin_array();
  for (const api::LayoutRow& row : rows) {
    json.begin_object().field("name", row.name).field("devices", row.devices);
    if (row.refusal.empty()) {
      json.field("weights_bytes", row.weights).field("kv_bytes", row.kv);
      json.field("total_bytes", row.total);
      if (row.decode_us) json.field("decode_us", *row.decode_us);
      if (row.fits) json.field("fits", *row.fits);
    } else {
      json.field("refusal", row.refusal);
    }
    json.end_object();
  }
  json.end_array();
}

void write_memory(JsonWriter& json, const api::MemoryReport& memory) {
  write_mesh(json, memory.mesh);
  json.field("checkpoint_bytes", memory.checkpoint_bytes).key("devices").begin_array();
  for (const api::PlanDevice& device : memory.devices) write_device(json, memory, device);
  json.end_array().key("verdict").begin_object();
  const api::PlanDevice& fullest = memory.devices[memory.fullest];
  json.field("fullest_rank", fullest.rank).field("total_bytes", fullest.total);
  json.field("largest_part", memory.largest_part);
  if (memory.budget > 0) json.field("budget_bytes", memory.budget);
  if (memory.fits) json.field("fits", *memory.fits);
  json.key("advice").begin_array();
  for (const api::FitAdvice& advice : memory.advice) {
    json.begin_object().field("what", advice.what).field("value", advice.value);
    json.field("total_bytes", advice.total).end_object();
  }
  json.end_array().end_object();
  write_rows(json, "what_if", memory.what_if);
  write_rows(json, "compare", memory.compare);
}

void write_layers(JsonWriter& json, const api::MemoryReport& memory) {
  json.key("layers").begin_array();
  for (const api::LayerWeights& layer : memory.layers) {
    json.begin_object().field("layer", layer.layer).key("weights_by_class").begin_object();
    for (size_t c = 0; c < memory.classes.size(); ++c)
      json.field(memory.classes[c], layer.by_class[c]);
    json.end_object().end_object();
  }
  json.end_array();
}

const char* method_of(const plan::ReshardPlan& reshard, const plan::Traffic& each) {
  if (each.moved == 0) return "keep";
  return reshard.from_storage ? "read" : "point_to_point";
}

void write_transfers(JsonWriter& json, const char* name,
                     const std::vector<plan::Transfer>& transfers) {
  json.key(name).begin_array();
  for (const plan::Transfer& transfer : transfers) {
    json.begin_object();
    if (transfer.from != plan::kStorage) json.field("from", transfer.from);
    json.field("to", transfer.to).field("bytes", transfer.bytes).end_object();
  }
  json.end_array();
}

void write_moves(JsonWriter& json, const api::PlanReport& report) {
  const plan::ReshardPlan& reshard = *report.reshard;
  json.key("tensors").begin_array();
  for (size_t t = 0; t < report.tensors.size(); ++t) {
    const plan::Traffic& each = reshard.groups[reshard.group_of_tensor[t]].each;
    json.begin_object().field("name", report.tensors[t]).field("method", method_of(reshard, each));
    json.field("bytes_moved", each.moved).field("bytes_kept", each.kept);
    json.field("lower_bound", each.lower_bound);
    json.field("transfers_count", static_cast<i64>(each.transfers.size()));
    if (report.explained == t) write_transfers(json, "transfers", each.transfers);
    json.end_object();
  }
  json.end_array();
}

void write_ranks(JsonWriter& json, const plan::ReshardPlan& reshard) {
  json.key("per_rank").begin_array();
  for (const plan::RankLoad& rank : reshard.per_rank) {
    json.begin_object().field("rank", rank.rank).field("send", rank.send);
    json.field("recv", rank.receive).field("peak_bytes", rank.peak_bytes).end_object();
  }
  json.end_array();
}

void write_loads(JsonWriter& json, const plan::Reads& loads) {
  json.key("loads").begin_object().field("segments", loads.runs);
  json.field("requests", loads.requests).field("bytes", loads.bytes).end_object();
}

void write_time(JsonWriter& json, const plan::ReshardTime& time) {
  json.key("time").begin_object();
  const auto add = [&json](const char* name, const std::optional<double>& us) {
    if (us) json.field(name, *us);
  };
  add("network_us", time.network_us);
  add("load_us", time.load_us);
  add("read_us", time.read_us);
  add("write_us", time.write_us);
  add("files_us", time.files_us());
  json.field("error_band", plan::kReshardErrorBand).end_object();
}

void write_requests(JsonWriter& json, const api::SourceRequests& requests) {
  json.field("requests", requests.requests).field("bytes", requests.bytes);
  json.field("read_amplification", requests.read_amplification);
}

void write_reads(JsonWriter& json, const api::SourceReads& reads) {
  json.key("source_reads").begin_object();
  write_requests(json, reads.together);
  json.key("ranks").begin_array();
  for (size_t rank = 0; rank < reads.alone.size(); ++rank) {
    json.begin_object().field("rank", static_cast<i64>(rank));
    write_requests(json, reads.alone[rank]);
    json.end_object();
  }
  json.end_array().key("to_same_store").begin_object();
  write_requests(json, reads.to_same_store);
  json.field("copies", reads.to_same_store.copies);
  json.field("copied_bytes", reads.to_same_store.copied_bytes).end_object().end_object();
}

void write_levels(JsonWriter& json, const plan::ReshardPlan& reshard,
                  const std::vector<api::DrawnLevel>& levels) {
  json.key("memory").begin_object().field("rank", reshard.peak_rank);
  json.field("begin_bytes", reshard.begin_bytes).key("levels").begin_array();
  for (const api::DrawnLevel& level : levels) {
    json.begin_object().field("tensor", level.tensor).field("tensors", level.tensors);
    json.field("first_bytes", level.bytes.first).field("last_bytes", level.bytes.last);
    json.field("after_bytes", level.bytes.after).end_object();
  }
  json.end_array().end_object();
}

void write_reshard(JsonWriter& json, const api::PlanReport& report) {
  const plan::ReshardPlan& reshard = *report.reshard;
  json.key("reshard").begin_object().field("from", report.from).field("to", report.to);
  json.field("changes", reshard.changes).field("bytes_total", reshard.bytes_total);
  json.field("bytes_moved", reshard.bytes_moved).field("bytes_kept", reshard.bytes_kept);
  json.field("lower_bound", reshard.lower_bound).field("gap", reshard.gap());
  if (reshard.renumbering) {
    json.key("renumbered").begin_object();
    json.field("bytes_moved", reshard.renumbering->bytes_moved);
    json.field("lower_bound", reshard.renumbering->lower_bound);
    json.list("ranks", reshard.renumbering->device_of_rank).end_object();
  }
  json.field("gather_first_bytes", reshard.gather_first_bytes);
  json.field("inter_node_bytes", reshard.inter_node_bytes);
  json.field("between_nodes_bytes", reshard.between_nodes_bytes);
  json.field("between_nodes_saved", reshard.between_nodes_equal - reshard.between_nodes_bytes);
  json.field("transfers_count", reshard.transfers).field("pairs_count", reshard.pairs);
  json.field("read_segments", reshard.reads.runs);
  json.field("read_requests", reshard.reads.requests).field("read_bytes", reshard.reads.bytes);
  if (reshard.from_storage) write_loads(json, reshard.loads);
  json.field("write_segments", reshard.write_segments);
  json.field("peak_bytes", reshard.peak_bytes).field("peak_bound", reshard.peak_bound);
  if (report.reshard_time) write_time(json, *report.reshard_time);
  if (report.drawings) {
    json.field("node_size", report.drawings->node_size);
    write_transfers(json, "pairs", report.drawings->pairs);
    write_levels(json, reshard, report.drawings->levels);
  }
  write_ranks(json, reshard);
  write_moves(json, report);
  json.end_object();
}

}  // namespace

void write_fields(JsonWriter& json, const api::PlanDiff& diff) {
  json.field("equal", diff.equal()).key("changes").begin_array();
  for (const api::PlanChange& change : diff.changes) {
    json.begin_object().field("field", change.field);
    if (!change.a.empty()) json.key("a").raw(change.a);
    if (!change.b.empty()) json.key("b").raw(change.b);
    json.end_object();
  }
  json.end_array();
  if (diff.plans.a.empty()) return;
  json.key("plans").begin_object().key("a").raw(diff.plans.a);
  json.key("b").raw(diff.plans.b).end_object();
}

void write_fields(JsonWriter& json, const api::PlanReport& report) {
  json.field("source", report.source);
  if (report.is_from_config) json.field("from_config", true);
  write_memory(json, report.memory);
  if (report.drawings) {
    write_layers(json, report.memory);
    write_rules(json, report.drawings->rules);
  }
  if (report.reads) write_reads(json, *report.reads);
  if (report.reshard) write_reshard(json, report);
  if (report.cost) write_cost(json, *report.cost);
  if (report.replicas) {
    json.key("replicas").begin_object().field("number", report.replicas->number);
    json.field("devices", report.replicas->devices).field("zero", report.replicas->zero_stage);
    json.end_object();
  }
  write_training_comm(json, report.training_comm, report.is_timed);
  if (report.cost) write_service(json, *report.cost, report.price_per_hour);
  if (report.price_per_hour > 0) json.field("price_per_hour", report.price_per_hour);
  json.list("warnings", report.warnings);
}

}  // namespace shardtool::cli
