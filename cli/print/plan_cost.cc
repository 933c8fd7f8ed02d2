#include "cli/print/plan_cost.h"

#include <fmt/format.h>

#include <optional>

#include "cli/print/table.h"
#include "cli/print/text.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

using model::CommRow;
using model::PhasePrice;
using model::Roofline;

std::string bound_text(Roofline::Bound bound) {
  if (bound == Roofline::Bound::kComm) return "communication";
  return bound == Roofline::Bound::kLaunch ? "launches" : std::string(to_string(bound));
}

std::string roofline_text(const Roofline& roof) {
  auto text =
      fmt::format("{} at least, bound by {} ({} compute {}, memory {}, communication {}",
                  plan::format_modelled_us(roof.step_us), bound_text(roof.bound),
                  to_string(roof.arithmetic), plan::format_modelled_us(roof.compute_us),
                  plan::format_modelled_us(roof.memory_us), plan::format_modelled_us(roof.comm_us));
  if (roof.launch_us > 0) text += ", launches " + plan::format_modelled_us(roof.launch_us);
  return text + ")";
}

void print_phase(ReportWriter& out, const char* label, const std::string& what,
                 const PhasePrice& phase) {
  i64 sent = 0;
  for (const CommRow& row : phase.comm) sent += row.count * row.wire_bytes_per_rank;
  std::string text = fmt::format("{}: {}", what, roofline_text(*phase.roofline));
  if (sent > 0) text += fmt::format("; {} sent per device", format_bytes(sent));
  out.fact(label, text);
}

Table table_of_collectives() {
  return {{{"collectives"},
           {"axis"},
           {"operation"},
           {"calls", true},
           {"payload", true},
           {"sent per device", true},
           {"time of a call", true}},
          {}};
}

void add_rows(Table& table, const char* phase, const std::vector<CommRow>& rows) {
  for (const CommRow& row : rows) {
    std::vector<std::string> cells{phase,
                                   row.axis,
                                   std::string(to_string(row.collective.op)),
                                   format_count(row.count),
                                   format_bytes(row.collective.payload_bytes),
                                   format_bytes(row.wire_bytes_per_rank),
                                   fmt::format("{} ({})", plan::format_modelled_us(row.time.us),
                                               to_string(row.time.algorithm))};
    table.rows.push_back(std::move(cells));
  }
}

void print_collectives(ReportWriter& out, const api::CostReport& cost) {
  Table table = table_of_collectives();
  if (cost.workload.prompt_len > 1) add_rows(table, "prefill", cost.price->prefill.comm);
  add_rows(table, "decode", cost.price->decode.comm);
  if (!table.rows.empty()) out.table(table);
}

void write_rows(JsonWriter& json, std::string_view name, const std::vector<CommRow>& rows,
                bool timed) {
  json.key(name).begin_array();
  for (const CommRow& row : rows) {
    // The name identifies equal calls in two plans for `plan diff`.
    json.begin_object().field("name",
                              fmt::format("{} {} of {}", row.axis, to_string(row.collective.op),
                                          row.collective.payload_bytes));
    json.field("axis", row.axis).field("op", to_string(row.collective.op));
    json.field("count", row.count).field("group", row.collective.group.devices);
    json.field("nodes", row.collective.group.nodes);
    json.field("payload_bytes", row.collective.payload_bytes);
    json.field("wire_bytes_per_rank", row.wire_bytes_per_rank);
    if (timed) {
      json.field("time_us", row.time.us);
      json.field("algorithm", to_string(row.time.algorithm));
    }
    json.end_object();
  }
  json.end_array();
}

void write_roofline(JsonWriter& json, const PhasePrice& phase) {
  const Roofline& roof = *phase.roofline;
  json.field("compute_us", roof.compute_us);
  json.field("memory_us", roof.memory_us);
  json.field("comm_us", roof.comm_us);
  json.field("launch_us", roof.launch_us);
  json.field("step_us", roof.step_us);
  json.field("bound", to_string(roof.bound));
  json.field("arithmetic", to_string(roof.arithmetic));
}

double gb_of(i64 bytes) {
  return static_cast<double>(bytes) / 1e9;
}

std::string fabric_text(const plan::HardwareProfile& profile) {
  if (const auto* torus = std::get_if<plan::Torus>(&profile.fabric)) {
    return fmt::format("{}-D torus, {:g} GB/s per link", torus->axes, torus->link_gb_per_s);
  }
  if (const auto* messages = std::get_if<plan::Messages>(&profile.fabric)) {
    return fmt::format("messages of {:g} us and {:g} GB/s, {} together", messages->latency_us,
                       messages->gb_per_s, messages->domain);
  }
  const auto& links = std::get<plan::Links>(profile.fabric);
  const char* kind = links.kind == plan::Links::Kind::kNvlink ? "NVLink"
                     : links.kind == plan::Links::Kind::kXgmi ? "xGMI"
                                                              : "PCIe";
  return fmt::format("{} {:g} GB/s, {} together", kind, links.peak_gb_per_s, links.domain);
}

}  // namespace

void print_cost(ReportWriter& out, const api::CostReport& cost) {
  if (!cost.untimed.empty()) {
    out.fact("forward", "not timed: " + cost.untimed);
  }
  if (cost.profile.empty()) return;
  if (!cost.price) {
    out.fact("forward", "not priced: " + quote_for_message(cost.why_not));
    return;
  }
  const model::ReplicaWorkload& workload = cost.workload;
  if (workload.prompt_len > 1) {
    print_phase(out, "prefill",
                fmt::format("{} x {}{}", workload.batch, plural(workload.prompt_len, "token"),
                            workload.cached > 0
                                ? fmt::format(", {} of each cached", format_count(workload.cached))
                                : ""),
                cost.price->prefill);
  }
  print_phase(
      out, "decode",
      fmt::format("{} x 1 token, context {}", workload.batch, format_count(workload.context)),
      cost.price->decode);
  print_collectives(out, cost);
  out.fact("model",
           fmt::format("a roofline on {}, no forecast; collectives within {:.0f}% of measured ones",
                       cost.profile, 100 * plan::kTimeErrorBand));
}

void print_training_comm(ReportWriter& out, const std::vector<CommRow>& rows, bool timed) {
  if (rows.empty()) return;
  Table table = table_of_collectives();
  add_rows(table, "training step", rows);
  if (!timed) {
    table.columns.pop_back();
    for (auto& row : table.rows) row.pop_back();
  }
  out.table(table);
}

void write_training_comm(JsonWriter& json, const std::vector<CommRow>& rows, bool timed) {
  if (rows.empty()) return;
  json.key("comm").begin_object();
  write_rows(json, "training", rows, timed);
  json.end_object();
}

void write_cost(JsonWriter& json, const api::CostReport& cost) {
  if (!cost.price) {
    json.field("unpriced", cost.why_not);
    return;
  }
  const bool timed = !cost.profile.empty();
  json.key("comm").begin_object();
  write_rows(json, "prefill", cost.price->prefill.comm, timed);
  write_rows(json, "decode", cost.price->decode.comm, timed);
  json.end_object();
  if (!cost.untimed.empty()) json.field("untimed", cost.untimed);
  if (!timed) return;
  json.field("profile", cost.profile).key("roofline").begin_object();
  write_roofline(json, cost.price->decode);
  json.key("prefill").begin_object();
  write_roofline(json, cost.price->prefill);
  json.end_object().field("error_band", plan::kTimeErrorBand).end_object();
}

namespace {

/// Bounds of a server that always decodes the workload's batch.
struct Service {
  std::optional<double> first_token_us;  ///< one pass over all prompts, which ends with their first
                                         ///< tokens; nullopt without a prompt
  double tokens_per_second = 0;          ///< output tokens of all sequences, at most
  double price_per_million = 0;          ///< of output tokens, at least; 0 without a price
};

std::optional<Service> service_of(const api::CostReport& cost, double price_per_hour) {
  constexpr double kMicroseconds = 1e6;
  constexpr double kSecondsPerHour = 3600;
  if (!cost.price || !cost.price->decode.roofline || cost.profile.empty()) return std::nullopt;
  const double step = cost.price->decode.roofline->step_us;
  if (step <= 0) return std::nullopt;
  Service service;
  service.tokens_per_second =
      static_cast<double>(cost.workload.batch) * kMicroseconds / *cost.stage_step_us;
  if (cost.workload.prompt_len > 1 && cost.price->prefill.roofline)
    service.first_token_us = cost.price->prefill.roofline->step_us;
  service.price_per_million = price_per_hour / kSecondsPerHour / service.tokens_per_second * 1e6;
  return service;
}

}  // namespace

void print_service(ReportWriter& out, const api::CostReport& cost, double price_per_hour) {
  const auto service = service_of(cost, price_per_hour);
  if (!service) return;
  std::string text = fmt::format("at most {} output tokens per second ({})",
                                 format_count(static_cast<i64>(service->tokens_per_second)),
                                 plural(cost.workload.batch, "sequence"));
  if (service->first_token_us) {
    text = fmt::format("first token (TTFT) after {} at least; {}",
                       plan::format_modelled_us(*service->first_token_us), text);
  }
  if (service->price_per_million > 0)
    text += fmt::format("; at least {:.3g} per million of them", service->price_per_million);
  out.fact("service", text);
}

void write_service(JsonWriter& json, const api::CostReport& cost, double price_per_hour) {
  const auto service = service_of(cost, price_per_hour);
  if (!service) return;
  json.key("service").begin_object();
  json.field("tokens_per_second", service->tokens_per_second);
  if (service->first_token_us) json.field("first_token_us", *service->first_token_us);
  if (service->price_per_million > 0)
    json.field("price_per_million_tokens", service->price_per_million);
  json.end_object();
}

void print_calibrated(Session& session, const plan::HardwareProfile& profile) {
  TextReport out(session.out(), session.out_style());
  const auto line = [&](const char* label, const std::string& text) { out.fact(label, text); };
  line("measured", fmt::format("{}: {}", profile.measured->host, profile.description));
  line("memory", fmt::format("{:g} GB/s", profile.memory_gb_per_s));
  line("GEMM", fmt::format("{:g} TFLOP/s", profile.rates.bf16_tflops));
  line("fabric", fabric_text(profile));
  const auto rate = [](const plan::TimeTable& table) {
    return fmt::format("{}/s", format_bytes(static_cast<i64>(plan::bytes_per_s(table))));
  };
  line("files", fmt::format("{} read, {} written", rate(profile.storage->read_us_of_bytes),
                            rate(profile.storage->write_us_of_bytes)));
  Table table{{{"ranks", true}, {"operation"}, {"payload", true}, {"time of a call", true}}, {}};
  for (const plan::Timing& timing : profile.timings) {
    for (const auto& [bytes, us] : timing.us_of_bytes) {
      table.rows.push_back({fmt::format("{}", timing.devices), std::string(to_string(timing.op)),
                            format_bytes(bytes), plan::format_modelled_us(us)});
    }
  }
  out.table(table);
}

void print_text(Session& session, const std::vector<plan::HardwareProfile>& profiles) {
  TextReport out(session.out(), session.out_style());
  Table table{{{"profile"},
               {"memory", true},
               {"GB/s", true},
               {"bf16 TFLOP/s", true},
               {"network GB/s", true},
               {"fabric"}},
              {}};
  for (const plan::HardwareProfile& profile : profiles) {
    table.rows.push_back({profile.name, fmt::format("{:g} GB", gb_of(profile.memory_bytes)),
                          fmt::format("{:g}", profile.memory_gb_per_s),
                          fmt::format("{:g}", profile.rates.bf16_tflops),
                          fmt::format("{:g}", profile.network_gb_per_s), fabric_text(profile)});
  }
  out.table(table);
}

void write_fields(JsonWriter& json, const std::vector<plan::HardwareProfile>& profiles) {
  json.key("profiles").begin_array();
  for (const plan::HardwareProfile& profile : profiles) {
    json.begin_object().field("name", profile.name).field("description", profile.description);
    json.field("memory_bytes", profile.memory_bytes).field("usable_bytes", profile.usable_bytes);
    json.field("memory_gb_per_s", profile.memory_gb_per_s);
    json.field("bf16_tflops", profile.rates.bf16_tflops);
    json.field("domain", profile.domain());
    json.field("network_gb_per_s", profile.network_gb_per_s).end_object();
  }
  json.end_array();
}

}  // namespace shardtool::cli
