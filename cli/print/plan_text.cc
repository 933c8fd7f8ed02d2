#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "cli/print/html/json_view.h"
#include "cli/print/plan.h"
#include "cli/print/plan_change.h"
#include "cli/print/plan_cost.h"
#include "cli/print/plan_tables.h"
#include "cli/print/report/markdown.h"
#include "cli/print/text.h"
#include "lib/api/plan.h"
#include "lib/api/planning/plan_diff.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr size_t kShownDevices = 16;

std::string percent_text(i64 part, i64 whole) {
  return fmt::format("{:.1f}%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string on_devices(const api::MemoryReport& memory) {
  if (memory.devices.size() == 1) return "on one device";
  return fmt::format("on the fullest of {} devices ({})", memory.devices.size(),
                     to_string(memory.mesh));
}

/// "weights, 16.43 GiB".
std::string largest_text(const api::MemoryReport& memory) {
  return fmt::format("{}, {}", memory.largest_part, format_bytes(memory.largest_bytes));
}

void print_verdict(ReportWriter& out, const api::MemoryReport& memory) {
  const i64 total = memory.devices[memory.fullest].total;
  if (!memory.fits) {
    out.fact("needs", fmt::format("{} {}; the largest part is {}", format_bytes(total),
                                  on_devices(memory), largest_text(memory)));
    return;
  }
  out.fact(*memory.fits ? "fits" : "too big",
           fmt::format("{} of {} ({}) {}; the largest part is {}", format_bytes(total),
                       format_bytes(memory.budget), percent_text(total, memory.budget),
                       on_devices(memory), largest_text(memory)));
}

std::string advice_text(const api::FitAdvice& advice, bool fits) {
  if (advice.what == "devices") {
    return fmt::format("{} {}: {} on the fullest device", advice.value,
                       fits ? "would also fit" : "fits", format_bytes(advice.total));
  }
  if (advice.what == "weight bits") {
    return fmt::format("weights of {} bits fit: {} on the fullest device", advice.value,
                       format_bytes(advice.total));
  }
  return fmt::format("--memory-fraction down to {} fits", advice.value);
}

/// Says how many sequences of the batch a rank has, where groups of ranks share them out.
void print_batch(ReportWriter& out, const api::MemoryReport& memory) {
  if (memory.batch == 1 || memory.sequence_groups == 1) return;
  out.fact("batch",
           fmt::format("{} over {} groups of ranks, each with sequences of its own: memory "
                       "is counted for {} on a rank",
                       plural(memory.batch, "sequence"), memory.sequence_groups,
                       format_count(ceil_div(memory.batch, memory.sequence_groups))));
}

void print_cache(ReportWriter& out, const api::MemoryReport& memory) {
  const api::PlanDevice& device = memory.devices[memory.fullest];
  if (device.kv_per_token == 0) return;
  i64 all = 0;
  std::optional<i64> room;
  for (const api::PlanDevice& other : memory.devices) {
    all += other.kv_per_token;
    if (!other.kv_capacity_tokens) continue;
    room = std::min(room.value_or(*other.kv_capacity_tokens), *other.kv_capacity_tokens);
  }
  auto text = fmt::format("{} per token", format_bytes(device.kv_per_token));
  const i64 devices = std::ssize(memory.devices) / memory.sequence_groups;
  if (devices > 1) {
    const bool is_group = memory.sequence_groups > 1;
    text += fmt::format(" on this device, {} on {}", format_bytes(all / memory.sequence_groups),
                        is_group ? fmt::format("the {} devices of a sequence", devices) : "all");
  }
  if (room) text += fmt::format("; the budget leaves room for {} tokens", format_count(*room));
  out.fact("cache", text);
}

/// "8 of this layout, on 64 devices in all; ZeRO 1 partitions the optimizer's state among them".
void print_replicas(ReportWriter& out, const api::PlannedReplicas& replicas) {
  constexpr const char* kPartitioned[] = {"", "the optimizer's state",
                                          "gradients and the optimizer's state",
                                          "weights, gradients and the optimizer's state"};
  if (replicas.number == 1) return;
  auto text = fmt::format("{} of this layout, on {} in all", format_count(replicas.number),
                          plural(replicas.devices, "device"));
  if (replicas.zero_stage > 0)
    text += fmt::format("; ZeRO {} partitions {} among them", replicas.zero_stage,
                        kPartitioned[replicas.zero_stage]);
  out.fact("replicas", text);
}

void print_rows(ReportWriter& out, const char* title, const std::vector<api::LayoutRow>& rows) {
  if (rows.empty()) return;
  out.title(title);
  out.table(layouts_table(rows, false));
}

void print_verdict_and_advice(ReportWriter& out, const api::MemoryReport& memory) {
  print_verdict(out, memory);
  for (const api::FitAdvice& advice : memory.advice)
    out.fact("", advice_text(advice, memory.fits.value_or(true)));
}

void print_memory(ReportWriter& out, const api::MemoryReport& memory) {
  out.table(parts_table(memory, false));
  const Table devices = devices_table(memory, false);
  if (devices.rows.size() > 1 && devices.rows.size() <= kShownDevices) {
    Table totals{{{"devices"}, {"weights", true}, {"total", true}, {"fits"}}, {}};
    const size_t n = devices.columns.size();
    for (const auto& row : devices.rows) {
      totals.rows.push_back({row[0], row[memory.classes.size() + 1], row[n - 2], row[n - 1]});
    }
    out.table(totals);
  }
  print_batch(out, memory);
  print_cache(out, memory);
  print_rows(out, "what if", memory.what_if);
  print_rows(out, "compared", memory.compare);
}

std::string gap_text(const plan::ReshardPlan& reshard) {
  return reshard.bytes_moved == reshard.lower_bound
             ? std::string("no plan can move less with these ranks")
             : fmt::format("{:.1f}% above the bound of {}", 100 * reshard.gap(),
                           format_bytes(reshard.lower_bound));
}

void print_answer(ReportWriter& out, const api::PlanReport& report) {
  const plan::ReshardPlan& reshard = *report.reshard;
  if (reshard.changes == 0) {
    out.fact("moves", fmt::format("nothing: {} and {} are the same for "
                                  "all {}",
                                  report.from, report.to,
                                  plural(static_cast<i64>(report.tensors.size()), "tensor")));
    return;
  }
  const char* verb = reshard.from_storage ? "are read" : "move";
  out.fact("moves", fmt::format("{} of {} {} from {} to {}, {} stay; {} of {}",
                                format_bytes(reshard.bytes_moved),
                                format_bytes(reshard.bytes_total), verb, report.from, report.to,
                                format_bytes(reshard.bytes_kept), format_count(reshard.changes),
                                plural(static_cast<i64>(report.tensors.size()), "tensor")));
}

/// Describes the traffic between nodes, its unavoidable part, and the bytes saved.
std::string nodes_text(const plan::ReshardPlan& reshard) {
  if (reshard.between_nodes_equal == 0) return "";
  std::string text =
      fmt::format("; {} from node to node", format_bytes(reshard.between_nodes_bytes));
  if (reshard.inter_node_bytes < reshard.between_nodes_bytes) {
    text += fmt::format(", {} with copies made inside", format_bytes(reshard.inter_node_bytes));
  }
  const i64 saved = reshard.between_nodes_equal - reshard.between_nodes_bytes;
  if (saved > 0) text += fmt::format("; senders of the own node save {}", format_bytes(saved));
  return text;
}

std::string files_text(const plan::ReshardPlan& reshard) {
  const bool loads = reshard.from_storage;
  const plan::Reads& reads = loads ? reshard.loads : reshard.reads;
  const i64 wanted = loads ? reshard.bytes_total : 0;
  auto text = fmt::format("{} contiguous runs to read{}, {} to write", format_count(reads.runs),
                          loads ? " when every rank loads its own" : "",
                          format_count(reshard.write_segments));
  if (reads.requests == reads.runs) return text;
  text += fmt::format("; over short gaps {} reads of {}", format_count(reads.requests),
                      format_bytes(reads.bytes));
  if (wanted > 0) text += fmt::format(", {} of what is wanted", percent_text(reads.bytes, wanted));
  return text;
}

void print_time(ReportWriter& out, const plan::ReshardTime& time) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (time.network_us) {
    add(fmt::format("{} between the devices", plan::format_modelled_us(*time.network_us)));
  }
  if (time.load_us) add(fmt::format("{} to load", plan::format_modelled_us(*time.load_us)));
  if (const auto files = time.files_us()) {
    add(fmt::format("{} through files (read {}, write {} meanwhile)",
                    plan::format_modelled_us(*files), plan::format_modelled_us(*time.read_us),
                    plan::format_modelled_us(*time.write_us)));
  }
  if (text.empty()) {
    text = "not known: the profile has no \"storage\"";
  } else {
    text += fmt::format("; at full rates, within {:.0f}%", 100 * plan::kReshardErrorBand);
  }
  out.fact("time", text);
}

void print_loads(ReportWriter& out, const plan::ReshardPlan& reshard) {
  const auto most = [&](i64 plan::RankLoad::*load) {
    return *std::max_element(reshard.per_rank.begin(), reshard.per_rank.end(),
                             [load](const auto& a, const auto& b) { return a.*load < b.*load; });
  };
  const auto sender = most(&plan::RankLoad::send);
  const auto receiver = most(&plan::RankLoad::receive);
  auto text = fmt::format("rank {} receives {}", receiver.rank, format_bytes(receiver.receive));
  if (!reshard.from_storage)
    text = fmt::format("rank {} sends {}, ", sender.rank, format_bytes(sender.send)) + text;
  out.fact("busiest", text);
  out.fact("messages", fmt::format("{} between {} pairs{}", format_count(reshard.transfers),
                                   format_count(reshard.pairs), nodes_text(reshard)));
  out.fact("memory",
           fmt::format("peak {} on a device, tensor after tensor; lower bound {}",
                       format_bytes(reshard.peak_bytes), format_bytes(reshard.peak_bound)));
  out.fact("files", files_text(reshard));
}

void print_renumbering(ReportWriter& out, const plan::ReshardPlan& reshard) {
  if (!reshard.renumbering && !reshard.from_storage) {
    out.fact("renumber",
             "whether other ranks would move less is not computed for so many "
             "devices");
  }
  if (!reshard.renumbering || reshard.renumbering->bytes_moved == reshard.bytes_moved) return;
  const auto& devices = reshard.renumbering->device_of_rank;
  std::string text;
  for (size_t rank = 0; rank < std::min(devices.size(), kShownDevices); ++rank) {
    text += fmt::format("{}{}", rank == 0 ? "" : " ", devices[rank]);
  }
  if (devices.size() > kShownDevices) text += " ...";
  std::string line = fmt::format("the new ranks in order on the old ranks {}", text);
  if (reshard.renumbering->lower_bound < reshard.renumbering->bytes_moved) {
    line += fmt::format("; no numbering moves less than {}",
                        format_bytes(reshard.renumbering->lower_bound));
  }
  out.fact("renumber", line);
}

void print_reshard(ReportWriter& out, const api::PlanReport& report) {
  const plan::ReshardPlan& reshard = *report.reshard;
  if (reshard.changes == 0) return;
  out.table(methods_table(reshard, false));
  out.fact("bound", gap_text(reshard));
  print_renumbering(out, reshard);
  print_loads(out, reshard);
  if (report.reshard_time) print_time(out, *report.reshard_time);
  if (report.explained) {
    out.fact("tensor", quote_for_message(report.tensors[*report.explained]));
    const auto& each = reshard.groups[reshard.group_of_tensor[*report.explained]].each;
    out.table(transfers_table(each, false));
  }
}

}  // namespace

bool is_of_one(const api::PlanChange& change) {
  const std::string& field = change.field;
  return field.starts_with("devices/") || field.starts_with("reshard/tensors/") ||
         field.starts_with("reshard/per_rank/") || field.starts_with("reshard/renumbered/ranks/");
}

namespace {

void print_costs(ReportWriter& out, const api::PlanReport& report) {
  if (report.replicas) print_replicas(out, *report.replicas);
  if (report.reads) {
    out.fact("reads", "from the object store, for data");
    out.table(reads_table(*report.reads, false));
  }
  if (report.cost) print_cost(out, *report.cost);
  print_training_comm(out, report.training_comm, report.is_timed);
  if (report.cost) print_service(out, *report.cost, report.price_per_hour);
  if (report.price_per_hour > 0) {
    out.fact("price", fmt::format("{:.2f} per hour for {}", report.price_per_hour,
                                  plural(report.devices(), "device")));
  }
}

}  // namespace

void print_text(Session& session, const api::PlanReport& report) {
  for (const auto& warning : report.warnings) session.warn(warning);
  if (session.quiet()) return;
  TextReport out(session.out(), session.out_style());
  if (report.reshard) {
    print_answer(out, report);
    print_reshard(out, report);
  }
  print_verdict_and_advice(out, report.memory);
  print_memory(out, report.memory);
  print_costs(out, report);
}

void print_csv(Session& session, const api::PlanReport& report) {
  print_table(session.out(),
              report.reshard ? moves_table(report, true) : devices_table(report.memory, true),
              TableFormat::kCsv);
}

std::string markdown(const api::PlanReport& report) {
  MarkdownReport out(
      fmt::format("shardtool plan of {} on {}", report.source, to_string(report.memory.mesh)));
  print_verdict_and_advice(out, report.memory);
  if (report.reshard) {
    print_answer(out, report);
    print_reshard(out, report);
  }
  print_memory(out, report.memory);
  print_costs(out, report);
  for (const std::string& warning : report.warnings) out.fact("warning", warning);
  return out.take();
}

namespace {

/// Order in which a reader wants the values that differ: the verdict, then what it is made of.
size_t rank_of(const std::string& field) {
  constexpr std::array<std::string_view, 6> kOrder{"verdict/", "mesh/",     "reshard/",
                                                   "service/", "roofline/", "comm/"};
  if (field.starts_with("verdict/advice/")) return kOrder.size();
  const auto* const found = std::ranges::find_if(
      kOrder, [&](std::string_view prefix) { return field.starts_with(prefix); });
  return static_cast<size_t>(found - kOrder.begin());
}

/// The verdict of a plan's document.
std::string document_verdict(const std::string& document) {
  const auto json = nlohmann::ordered_json::parse(document);
  const JsonView plan(json);
  const JsonView verdict = plan["verdict"];
  std::string total = format_bytes(verdict["total_bytes"].count());
  std::string word = "needs";
  if (verdict.has("fits")) {
    word = verdict["fits"].truth() ? "fits:" : "too big:";
    total += " of " + format_bytes(verdict["budget_bytes"].count());
  }
  return fmt::format("{} {} on the fullest of {}", word, total,
                     plural(static_cast<i64>(plan["devices"].size()), "device"));
}

Table changes_table(const api::PlanDiff& diff) {
  Table table{{{"value"}, {"a", true}, {"b", true}}, {}};
  for (const api::PlanChange& change : diff.changes) {
    if (!is_of_one(change)) table.rows.push_back({change.field, change.a, change.b});
  }
  return table;
}

std::string of_one_text(const api::PlanDiff& diff) {
  const i64 of_one = std::ranges::count_if(diff.changes, is_of_one);
  return of_one == 0 ? ""
                     : fmt::format("{} of single devices and tensors: --json lists them",
                                   plural(of_one, "value"));
}

}  // namespace

void print_text(Session& session, const api::PlanDiff& diff) {
  if (session.quiet()) return;
  const Table table = changes_table(diff);
  if (!table.rows.empty()) print_table(session.out(), table, TableFormat::kText);
  if (const std::string rest = of_one_text(diff); !rest.empty())
    session.out().write("  and " + rest + "\n");
  session.out().write(diff.equal() ? "same\n" : "differs\n");
}

void print_csv(Session& session, const api::PlanDiff& diff) {
  print_table(session.out(), changes_table(diff), TableFormat::kCsv);
}

std::string markdown(const api::PlanDiff& diff) {
  std::vector<const api::PlanChange*> changes;
  for (const api::PlanChange& change : diff.changes) {
    if (!is_of_one(change)) changes.push_back(&change);
  }
  std::ranges::stable_sort(changes, {}, [](const auto* change) { return rank_of(change->field); });
  MarkdownReport out(fmt::format("shardtool plan diff: {}", diff.equal() ? "same" : "differs"));
  out.fact("before", document_verdict(diff.plans.a));
  out.fact("after", document_verdict(diff.plans.b));
  Table table{{{"value"}, {"before", true}, {"after", true}, {"change", true}}, {}};
  for (const api::PlanChange* change : changes) {
    const auto& [field, a, b] = *change;
    table.rows.push_back({field, value_text(field, a), value_text(field, b), growth_text(a, b)});
  }
  if (!table.rows.empty()) out.table(table);
  if (const std::string rest = of_one_text(diff); !rest.empty()) out.fact("more", rest);
  return out.take();
}

}  // namespace shardtool::cli
