#include <fmt/format.h>

#include <map>
#include <optional>
#include <vector>

#include "cli/print/html/each_page.h"
#include "cli/print/html/line_chart.h"
#include "cli/print/html/stacked_bars.h"
#include "cli/print/search/words.h"
#include "lib/api/planning/search/training_search.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr size_t kMostWays = 60;
constexpr size_t kComparedWays = 8;
/// Recompute of a layer: a key of "layers", and words.
constexpr std::pair<const char*, const char*> kRecomputes[] = {
    {"none", "keeps all activations"},
    {"selective", "recomputes attention"},
    {"full", "recomputes all"}};

/// "78 selective, 2 full": layers of all stages.
std::string recompute_text(const JsonView& row) {
  std::string text;
  for (const char* name : {"selective", "full"}) {
    i64 layers = 0;
    for (const JsonView& stage : row["stages"].elements()) layers += stage["layers"][name].count();
    if (layers > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", layers, name);
  }
  return text.empty() ? "nothing" : text;
}

class TrainSearchPage {
 public:
  TrainSearchPage(Page& page, const JsonView& search)
      : page_(page), search_(search), rows_(search["rows"]) {
    if (search.has("optimum")) best_ = row_at(search["optimum"]);
  }

  void write() {
    write_load();
    write_verdict();
    if (best_) {
      write_times();
      write_stages();
      write_front();
      write_ways();
    }
    write_refused();
    write_list(page_, "Warnings", search_["warnings"]);
    page_.note(fmt::format(
        "Times are modelled on {}. Weights, gradients and optimizer are exact, from headers; "
        "activations are an estimate.",
        search_["profile"].text()));
  }

 private:
  JsonView row_at(const JsonView& index) const { return rows_[static_cast<size_t>(index.count())]; }

  void write_load() {
    page_.html().open("header").element("h1", "Ways to train " + search_["source"].text());
    page_.html().open("p", {{"class", "soft"}}).text(search_["profile"].text() + "; steps of ");
    page_.count(search_["batch"]).text(" sequences of ").count(search_["sequence"]);
    page_.text(" tokens; ").bytes(search_["budget_bytes"]).text(" per device");
    page_.html().close().close();
  }

  void write_verdict() {
    page_.begin_verdict(best_ ? "good" : "bad");
    if (!best_) {
      page_.text("No way to train fits.").end_verdict();
      return;
    }
    page_.text(fmt::format("Best: {} on ", (*best_)["name"].text())).count((*best_)["devices"]);
    page_.text((*best_)["devices"].count() == 1 ? " device: " : " devices: ");
    page_.tokens_per_second(search_["value"]).text(" tokens/s per device, a step takes ");
    page_.milliseconds((*best_)["step_ms"]).text("; the fullest device needs ");
    page_.bytes((*best_)["total_bytes"]).text(" of ").bytes(search_["budget_bytes"]);
    page_.text(". No way has more than ").tokens_per_second(search_["bound"]);
    page_.text(" tokens/s per device.").end_verdict();
    write_runner_up();
    if (search_["memory_costs"].number() <= 0) return;
    page_.html().open("p");
    page_.text("Memory binds: without its limit the best would be ");
    page_.fraction(search_["memory_costs"]).text(" faster.");
    page_.html().close();
  }

  void write_runner_up() {
    for (const JsonView& loss : search_["losses"].elements()) {
      if (!search_.has("runner_up") || loss["row"].count() != search_["runner_up"].count())
        continue;
      cli::write_runner_up(page_, row_at(loss["row"])["name"].text(), loss);
      return;
    }
  }

  void write_times() {
    page_.begin_section("Where the time of a step goes");
    page_.note(
        "Time of the slowest stage by its cause, times the devices, since the goal is what a "
        "device yields: the best has the shortest bar. The table has the times of the step.");
    BarChart chart;
    chart.title = "time of a step by cause";
    chart.bars_width = 360;
    for (const auto& part : api::kStepParts) chart.kinds.emplace_back(part.words);
    for (const auto& [row, loss] : compared_rows(search_, kComparedWays)) {
      StackedBar bar{row["name"].text(), {}, loss_text(loss)};
      const double devices = row["devices"].number();
      for (size_t p = 0; p < std::size(api::kStepParts); ++p) {
        const JsonView ms = row["step"][api::kStepParts[p].field];
        bar.parts.push_back({p, ms, ms.number() * devices, milliseconds_text(ms)});
      }
      chart.bars.push_back(std::move(bar));
    }
    fit_texts(chart);
    write_bars(page_, chart);
    std::vector<std::string> titles{"way", "#devices"};
    for (const auto& part : api::kStepParts) titles.push_back(std::string("#") + part.words);
    titles.emplace_back("#step");
    page_.begin_table(titles);
    for (const auto& [row, loss] : compared_rows(search_, kComparedWays)) {
      page_.begin_row().name_cell(row["name"].text()).count_cell(row["devices"]);
      for (const auto& part : api::kStepParts) page_.milliseconds_cell(row["step"][part.field]);
      page_.milliseconds_cell(row["step_ms"]).end_row();
    }
    page_.end_table().end_section();
  }

  StackedBar memory_bar(const std::string& name, const JsonView& stage) const {
    StackedBar bar{name, {}, format_bytes(stage["total_bytes"].count())};
    i64 rest = stage["total_bytes"].count();
    size_t kind = 0;
    for (const char* field : {"state_bytes", "gathered_bytes", "activation_bytes"}) {
      const i64 bytes = stage[field].count();
      bar.parts.push_back({kind++, stage[field], static_cast<double>(bytes), format_bytes(bytes)});
      rest -= bytes;
    }
    bar.parts.push_back({kind, std::nullopt, static_cast<double>(rest), format_bytes(rest)});
    bar.limit = search_["budget_bytes"].number();
    return bar;
  }

  static StackedBar layers_bar(const std::string& name, const JsonView& stage) {
    StackedBar bar{name, {}, ""};
    size_t kind = 0;
    for (const auto& [key, words] : kRecomputes) {
      const JsonView layers = stage["layers"][key];
      if (layers.count() > 0)
        bar.end += fmt::format("{}{}", bar.end.empty() ? "" : " + ", layers.count());
      bar.parts.push_back({kind++, layers, layers.number(), plural(layers.count(), "layer")});
    }
    return bar;
  }

  void write_stages() {
    page_.begin_section("The stages of the best way");
    BarChart memory;
    memory.title = "memory of the fullest device of each stage";
    memory.kinds = {"weights, gradients, optimizer", "gathered weights", "activations", "overhead"};
    memory.limit_text = "budget " + format_bytes(search_["budget_bytes"].count());
    BarChart layers;
    layers.title = "layers of each stage by what they recompute";
    layers.bars_width = 360;
    for (const auto& [key, words] : kRecomputes) layers.kinds.emplace_back(words);
    const std::vector<JsonView> stages = (*best_)["stages"].elements();
    for (size_t s = 0; s < stages.size(); ++s) {
      const std::string name = stages.size() == 1 ? "all layers" : fmt::format("stage {}", s);
      memory.bars.push_back(memory_bar(name, stages[s]));
      layers.bars.push_back(layers_bar(name, stages[s]));
    }
    fit_texts(layers);
    write_bars(page_, memory);
    write_bars(page_, layers);
    page_.begin_table({"stage", "#keep all", "#recompute attention", "#recompute all",
                       "#weights, gradients, optimizer", "#gathered", "#activations", "#total",
                       "#busy"});
    for (size_t s = 0; s < stages.size(); ++s) {
      page_.begin_row().text_cell(fmt::format("{}", s));
      for (const auto& [key, words] : kRecomputes) page_.count_cell(stages[s]["layers"][key]);
      for (const char* field : {"state_bytes", "gathered_bytes", "activation_bytes", "total_bytes"})
        page_.bytes_cell(stages[s][field]);
      page_.milliseconds_cell(stages[s]["time_ms"]).end_row();
    }
    page_.end_table().end_section();
  }

  void write_front() {
    if (!search_.has("front") || search_["front"].size() < 2) return;
    page_.begin_section("Time against memory");
    const std::vector<JsonView> front = search_["front"].elements();
    LineChart chart;
    chart.title = "tokens per second and device by memory of a device";
    chart.x = bytes_axis("memory of the fullest device", front.back()["total_bytes"].number());
    chart.y = {"tokens/s per device", 1, [](double tokens) { return tokens_text(tokens); }};
    for (const JsonView& row : front) {
      const JsonView tokens = row["tokens_per_s_per_device"];
      chart.points.push_back({row["total_bytes"].number(), tokens.number(), tokens,
                              fmt::format("{}: {} tokens/s per device", row["name"].text(),
                                          tokens_text(tokens.number()))});
    }
    chart.has_numbers = true;
    chart.rings_last = true;
    chart.limit_x = search_["budget_bytes"].number();
    chart.limit_text = "budget";
    write_line_chart(page_, chart);
    page_.note(
        "Each point is the best way under a smaller budget of memory; the last, with a ring, is "
        "the best of all.");
    page_.begin_table(
        {"no.", "way", "#fullest device", "#step", "#tokens/s/device", "layers that recompute"});
    for (size_t i = 0; i < front.size(); ++i) {
      page_.begin_row().text_cell(fmt::format("{}", i + 1)).name_cell(front[i]["name"].text());
      page_.bytes_cell(front[i]["total_bytes"]).milliseconds_cell(front[i]["step_ms"]);
      page_.tokens_cell(front[i]["tokens_per_s_per_device"]);
      page_.text_cell(recompute_text(front[i])).end_row();
    }
    page_.end_table().end_section();
  }

  void write_ways() {
    page_.begin_section("The best way of every layout");
    page_.begin_table({"way", "loses by", "#devices", "#step", "#tokens/s/device",
                       "#fullest device", "layers that recompute"});
    for (const auto& [row, loss] : compared_rows(search_, kMostWays)) {
      page_.begin_row().name_cell(row["name"].text());
      write_loss_cell(page_, loss);
      page_.count_cell(row["devices"]).milliseconds_cell(row["step_ms"]);
      page_.tokens_cell(row["tokens_per_s_per_device"]).bytes_cell(row["total_bytes"]);
      page_.text_cell(recompute_text(row)).end_row();
    }
    page_.end_table();
    note_experts(page_, rows_);
    const size_t all = search_["losses"].size() + 1;
    page_.note_rest(all, kMostWays);
    page_.end_section();
  }

  void write_refused() {
    if (search_["refused"].empty()) return;
    std::map<std::string, std::vector<JsonView>> groups;
    for (const JsonView& refused : search_["refused"].elements())
      groups[refused["constraint"].text()].push_back(refused);
    page_.begin_section("Excluded ways");
    page_.begin_table({"constraint", "#ways", "such as", "reason"});
    for (const auto& [constraint, ways] : groups) {
      page_.begin_row().text_cell(constraint);
      page_.cell([&] { page_.text(fmt::format("{}", ways.size())); }, true);
      page_.text_cell(ways.front()["name"].text()).text_cell(ways.front()["reason"].text());
      page_.end_row();
    }
    page_.end_table().end_section();
  }

  Page& page_;
  const JsonView& search_;
  JsonView rows_;
  std::optional<JsonView> best_;
};

}  // namespace

void write_plan_search_train(Page& page, const JsonView& search) {
  TrainSearchPage(page, search).write();
}

}  // namespace shardtool::cli
