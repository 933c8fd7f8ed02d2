#include "cli/print/search/training.h"

#include <fmt/format.h>

#include <map>

#include "cli/print/search/words.h"
#include "cli/print/text.h"
#include "lib/base/text.h"
#include "lib/plan/collective/collective_time.h"

namespace shardtool::cli {
namespace {

constexpr size_t kShownWays = 10;
constexpr double kStepUsPerMs = 1e3;
constexpr const char* kRecomputeNames[] = {"none", "selective", "full"};

/// "12 selective, 68 full" for the layers of all stages; "nothing" if no layer recomputes.
std::string recompute_text(const api::TrainingRow& row) {
  std::string text;
  for (size_t r = 1; r < std::size(kRecomputeNames); ++r) {
    i64 layers = 0;
    for (const api::TrainedStage& stage : row.stages) layers += stage.layers[r];
    if (layers == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", layers, kRecomputeNames[r]);
  }
  return text.empty() ? "nothing" : text;
}

std::string tokens_per_device(double value) {
  return tokens_text(value) + " tokens/s per device";
}

std::string loss_text(const api::TrainingLoss& loss) {
  return loss_words(loss.by, loss.reason);
}

Table ways_table(const api::TrainSearchReport& report) {
  Table table{{{"way"},
               {"devices", true},
               {"step", true},
               {"tokens/s/device", true},
               {"fullest device", true},
               {"layers that recompute"},
               {"loses by"}},
              {}};
  const auto add = [&](size_t index, const std::string& loses) {
    const api::TrainingRow& row = report.rows[index];
    table.rows.push_back({to_string(row.way), format_count(row.way.layout.devices()),
                          plan::format_modelled_us(row.step_us),
                          tokens_text(row.tokens_per_s_per_device()),
                          format_bytes(row.stages[row.fullest].total), recompute_text(row), loses});
  };
  add(*report.optimum, "");
  for (const api::TrainingLoss& loss : report.losses) {
    if (table.rows.size() == kShownWays) break;
    add(loss.row, loss_text(loss));
  }
  return table;
}

Table stages_table(const api::TrainingRow& row) {
  Table table{{{"stage", true},
               {"layers", true},
               {"recompute selective", true},
               {"full", true},
               {"weights, gradients, optimizer", true},
               {"activations", true},
               {"total", true},
               {"busy", true}},
              {}};
  for (size_t s = 0; s < row.stages.size(); ++s) {
    const api::TrainedStage& stage = row.stages[s];
    table.rows.push_back({format_count(static_cast<i64>(s)),
                          format_count(stage.layers[0] + stage.layers[1] + stage.layers[2]),
                          format_count(stage.layers[1]), format_count(stage.layers[2]),
                          format_bytes(stage.state + stage.gathered),
                          format_bytes(stage.activations), format_bytes(stage.total),
                          plan::format_modelled_us(stage.parts.busy())});
  }
  return table;
}

/// "compute 71 %, idle stages 12 %" of the slowest stage.
std::string parts_text(const api::TrainingRow& row) {
  const plan::StepParts& parts = row.stages[row.slowest].parts;
  std::string text;
  for (const auto& part : api::kStepParts) {
    const double of = parts.*part.member;
    if (of <= 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", part.words,
                        percent_text(of / parts.total()));
  }
  return text;
}

/// Lines of a report, as text or as a list of a comment.
class Lines {
 public:
  Lines(Session& session, TableFormat format) : session_(session), format_(format) {}

  void add(const char* label, const std::string& text) {
    if (format_ == TableFormat::kMarkdown) {
      session_.out().write(fmt::format("- {}: {}\n", label, text));
    } else {
      session_.out().write(labelled(session_.out_style(), label, text));
    }
  }
  void add(const Table& table) {
    if (format_ == TableFormat::kMarkdown) session_.out().write("\n");
    print_table(session_.out(), table, format_);
    if (format_ == TableFormat::kMarkdown) session_.out().write("\n");
  }

 private:
  Session& session_;
  TableFormat format_;
};

void print_best(const api::TrainSearchReport& report, Lines& lines) {
  const api::TrainingRow& best = report.rows[*report.optimum];
  lines.add("best",
            fmt::format("{} on {}: {}, a step takes {}", to_string(best.way),
                        plural(best.way.layout.devices(), "device"),
                        tokens_per_device(report.value), plan::format_modelled_us(best.step_us)));
  lines.add("time", parts_text(best));
  lines.add("bound", "no way has more than " + tokens_per_device(report.bound));
  for (const api::TrainingLoss& loss : report.losses) {
    if (loss.row != report.runner_up) continue;
    lines.add("runner-up", runner_up_words(to_string(report.rows[loss.row].way),
                                           to_string(best.way), loss.by, loss.reason));
  }
  if (report.memory_costs > 0)
    lines.add("binds", fmt::format("memory: without its limit the best would be {} faster",
                                   percent_text(report.memory_costs)));
  lines.add(ways_table(report));
  if (best.stages.size() > 1) lines.add(stages_table(best));
}

void print_refused(const api::TrainSearchReport& report, Lines& lines) {
  std::map<std::string, std::pair<i64, const api::RefusedTraining*>> groups;
  for (const api::RefusedTraining& refused : report.refused) {
    auto& [count, first] = groups[refused.constraint];
    if (count++ == 0) first = &refused;
  }
  for (const auto& [constraint, group] : groups) {
    lines.add("excluded",
              fmt::format("{} by {}, such as {}: {}", plural(group.first, "way"), constraint,
                          to_string(group.second->way), group.second->reason));
  }
}

void write_way(JsonWriter& json, const api::TrainingWay& way) {
  json.field("name", to_string(way)).field("devices", way.layout.devices());
  json.field("dp", way.layout.dp).field("pp", way.layout.pp).field("ep", way.layout.ep);
  json.field("tp", way.layout.tp).field("expert_parallel", way.layout.expert_parallel);
  json.field("zero", way.zero_stage).field("micro_batch", way.micro_batch);
  json.field("sequence_parallel", way.sequence_parallel);
  json.field("virtual_stages", way.virtual_stages);
}

void write_parts(JsonWriter& json, const plan::StepParts& parts) {
  json.key("step").begin_object();
  for (const auto& part : api::kStepParts)
    json.key(part.field).exact(parts.*part.member / kStepUsPerMs);
  json.end_object();
}

void write_row(JsonWriter& json, const api::TrainingRow& row) {
  json.begin_object();
  write_way(json, row.way);
  json.field("micro_batches", row.micro_batches);
  json.key("step_ms").exact(row.step_us / kStepUsPerMs);
  json.key("tokens_per_s").exact(row.tokens_per_s);
  json.key("tokens_per_s_per_device").exact(row.tokens_per_s_per_device());
  json.field("total_bytes", row.stages[row.fullest].total);
  write_parts(json, row.stages[row.slowest].parts);
  json.key("stages").begin_array();
  for (const api::TrainedStage& stage : row.stages) {
    json.begin_object().key("layers").begin_object();
    for (size_t r = 0; r < std::size(kRecomputeNames); ++r)
      json.field(kRecomputeNames[r], stage.layers[r]);
    json.end_object().field("state_bytes", stage.state).field("gathered_bytes", stage.gathered);
    json.field("activation_bytes", stage.activations).field("total_bytes", stage.total);
    json.key("time_ms").exact(stage.parts.busy() / kStepUsPerMs);
    json.end_object();
  }
  json.end_array().end_object();
}

}  // namespace

void print_text(Session& session, const api::TrainSearchOptions& options,
                const api::TrainSearchReport& report, TableFormat format) {
  Lines lines(session, format);
  if (format == TableFormat::kMarkdown)
    session.out().write(fmt::format("# Ways to train on {}\n\n", options.plan.hardware->name));
  for (const std::string& warning : report.warnings) lines.add("warning", warning);
  if (report.optimum) {
    print_best(report, lines);
  } else {
    lines.add("none", "no way to train fits");
  }
  print_refused(report, lines);
  lines.add("model", fmt::format("times are modelled on {}; collectives among replicas run beside "
                                 "the passes, all others between them",
                                 options.plan.hardware->name));
}

void write_fields(JsonWriter& json, const api::TrainSearchOptions& options,
                  const api::TrainSearchReport& report) {
  json.field("source", options.plan.sources.front());
  json.field("profile", options.plan.hardware->name);
  json.field("sequence", options.sequence).field("batch", options.batch);
  json.field("budget_bytes", options.plan.device.usable_bytes());
  json.key("bound").exact(report.bound);
  if (report.optimum) {
    json.key("value").exact(report.value);
    json.field("optimum", static_cast<i64>(*report.optimum));
  }
  if (report.runner_up) json.field("runner_up", static_cast<i64>(*report.runner_up));
  json.key("memory_costs").exact(report.memory_costs);
  json.key("losses").begin_array();
  for (const api::TrainingLoss& loss : report.losses) {
    json.begin_object().field("row", static_cast<i64>(loss.row));
    json.field("by", loss.by).field("reason", loss.reason).end_object();
  }
  json.end_array().key("rows").begin_array();
  for (const api::TrainingRow& row : report.rows) write_row(json, row);
  json.end_array();
  if (!options.smaller_budgets.empty()) {
    json.key("front").begin_array();
    for (const api::TrainingRow& row : report.front) write_row(json, row);
    json.end_array();
  }
  json.key("refused").begin_array();
  for (const api::RefusedTraining& refused : report.refused) {
    json.begin_object();
    write_way(json, refused.way);
    json.field("constraint", refused.constraint).field("reason", refused.reason).end_object();
  }
  json.end_array().list("warnings", report.warnings);
}

}  // namespace shardtool::cli
