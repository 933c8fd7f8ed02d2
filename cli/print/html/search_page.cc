#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "cli/print/html/each_page.h"
#include "cli/print/html/front_chart.h"
#include "cli/print/html/stacked_bars.h"
#include "cli/print/search/words.h"
#include "lib/api/plan_search.h"
#include "lib/base/error.h"
#include "lib/plan/collective/collective_time.h"

namespace shardtool::cli {
namespace {

constexpr size_t kMostLayouts = 60;
constexpr size_t kComparedRows = 8;

class SearchPage {
 public:
  SearchPage(Page& page, const JsonView& search)
      : page_(page), search_(search), rows_(search["rows"]) {
    const auto objective = plan::objective_named(search["objective"].text());
    if (!objective) throw Error(ErrorCode::kInternal, "a page has an unknown objective");
    objective_ = *objective;
    if (search.has("optimum")) best_ = row_at(search["optimum"]);
  }

  void write() {
    write_load();
    write_verdict();
    if (!rows_.empty()) write_offers();
    if (best_) {
      write_times();
      write_layouts();
      if (search_.has("from")) write_moves();
    }
    write_bindings();
    write_refused();
    write_list(page_, "Warnings", search_["warnings"]);
    page_.note(
        fmt::format("Times are modelled on {}: passes, other clients' prompts, waiting and "
                    "an engine's own time. Weights and caches are exact, from headers.",
                    search_["profile"].text()));
  }

 private:
  JsonView row_at(const JsonView& index) const { return rows_[static_cast<size_t>(index.count())]; }

  std::string name_of(const JsonView& row) const {
    const std::string kv_dtype = row.has("kv_dtype") ? row["kv_dtype"].text() : "";
    const std::string source = search_["sources"].size() > 1 ? row["source"].text() : "";
    const std::string dtype = row.has("dtype") ? row["dtype"].text() : "";
    const auto cap =
        row.has("max_num_seqs") ? std::optional(row["max_num_seqs"].count()) : std::nullopt;
    return row_name(row["name"].text(),
                    {row["sequence_parallel"].truth(), kv_dtype, source, dtype, cap});
  }

  /// True for a rate of requests, which has no number of clients.
  bool is_open() const { return search_.has("request_rate"); }
  const char* clients_title() const { return is_open() ? "#at once" : "#clients"; }

  void requests(const JsonView& rate) {
    page_.text("; ").shown(rate, fmt::format("{:g}", rate.number())).text(" requests/s");
  }

  void value(const JsonView& number) {
    page_.shown(number, value_text(number.number(), objective_));
  }

  void write_load() {
    HtmlWriter& html = page_.html();
    html.open("header").element("h1", "Layouts of a server for " + search_["sources"][0].text());
    html.open("p", {{"class", "soft"}}).text(search_["profile"].text() + "; prompts of ");
    page_.count(search_["prompt_len"]).text(" tokens");
    if (search_["prefix_hit"].number() > 0)
      page_.text(", ").fraction(search_["prefix_hit"]).text(" of them cached");
    page_.text(", answers of ").count(search_["output_len"]);
    if (is_open()) requests(search_["request_rate"]);
    page_.text(fmt::format("; the goal is {}", search_["objective"].text()));
    write_limits(search_["limits"]);
    html.close().close();
  }

  void write_limits(const JsonView& limits) {
    const auto limit = [&](const char* field, const char* words, auto show) {
      if (!limits.has(field)) return;
      page_.text(words);
      show(limits[field]);
    };
    const auto ms = [&](const JsonView& number) {
      page_.shown(number, fmt::format("{:g} ms", number.number()));
    };
    limit("ttft_ms", "; TTFT at most ", ms);
    limit("tpot_ms", "; TPOT at most ", ms);
    limit("price_per_hour", "; at most ", [&](const JsonView& number) {
      page_.shown(number, fmt::format("{:g} per hour", number.number()));
    });
  }

  void write_verdict() {
    page_.begin_verdict(best_ ? "good" : "bad");
    if (best_) {
      const JsonView& best = *best_;
      page_.text(fmt::format("Best: {} on ", name_of(best))).count(best["devices"]);
      page_.text(best["devices"].count() == 1 ? " device with " : " devices with ");
      page_.count(best["concurrency"]);
      page_.text(is_open()                          ? " at once: "
                 : best["concurrency"].count() == 1 ? " client: "
                                                    : " clients: ");
      value(search_["value"]);
      page_.text("; TTFT ").milliseconds(best["ttft_ms"]);
      page_.text(", TPOT ").milliseconds(best["tpot_ms"]);
      page_.text(fmt::format(". No layout has {} than ", beyond_bound(objective_)));
      value(search_["bound"]);
      page_.text(".");
    } else {
      page_.text("No layout fits and keeps the limits.");
    }
    page_.end_verdict();
    if (search_.has("runner_up")) write_runner_up();
    if (best_ && best_->has("fallback")) write_fallback((*best_)["fallback"]);
  }

  void write_fallback(const JsonView& fallback) {
    HtmlWriter& html = page_.html();
    html.open("p").text("With ");
    page_.count(search_["survive"]);
    page_.text(fmt::format(" of its devices lost, {} on ", fallback["name"].text()));
    page_.count(fallback["devices"]).text(" holds the load.");
    html.close();
  }

  void write_runner_up() {
    const auto losses = search_["losses"].elements();
    const auto loss = std::ranges::find(losses, search_["runner_up"].count(),
                                        [](const JsonView& one) { return one["row"].count(); });
    if (loss == losses.end()) return;
    cli::write_runner_up(page_, name_of(row_at((*loss)["row"])), *loss);
  }

  void write_offers() {
    page_.begin_section("What the layouts offer");
    write_front_chart(page_, search_);
    page_.begin_table({"no.", "layout", "loses by", "#devices", clients_title(), "#tokens/s/client",
                       "#tokens/s/device", "#TTFT",
                       "#TPOT ± " + percent_text(search_["tpot_band"].number())});
    i64 number = 0;
    for (const JsonView& one : search_["front"].elements()) {
      const JsonView row = row_at(one["row"]);
      page_.begin_row().text_cell(fmt::format("{}", ++number)).name_cell(name_of(row));
      write_loss_cell(page_, one.has("by") ? std::optional(one) : std::nullopt);
      page_.count_cell(row["devices"]).count_cell(row["concurrency"]);
      page_.tokens_cell(row["tokens_per_s_per_user"]).tokens_cell(row["tokens_per_s_per_device"]);
      page_.milliseconds_cell(row["ttft_ms"]).milliseconds_cell(row["tpot_ms"]).end_row();
    }
    page_.end_table();
    page_.html().open("p", {{"class", "soft"}});
    page_.text(
        "TTFT is the time to the first token, TPOT that of each later one. Four of five "
        "measured TPOT were within ");
    page_.fraction(search_["tpot_band"]).text(" of the modelled ones");
    page_.text(has_later_tokens(search_) ? "; the shade is the front within that band." : ".");
    page_.html().close();
    page_.end_section();
  }

  void write_times() {
    page_.begin_section("Where the time goes");
    const bool is_of_devices = plan::is_of_devices(objective_);
    page_.note(is_of_devices ? "Time of an answer by its cause, times the devices per client, "
                               "since the goal is what a device yields: the best has the shortest "
                               "bar. The table has the times as a client sees them."
                             : "Time of an answer by its cause.");
    write_bars(page_, times_chart(is_of_devices));
    std::vector<std::string> titles{"layout", clients_title(),
                                    is_open() ? "#devices/request" : "#devices/client"};
    for (const auto& part : api::kAnswerParts) titles.push_back(std::string("#") + part.words);
    titles.emplace_back("#answer");
    page_.begin_table(titles);
    for (const auto& [row, loss] : compared_rows(search_, kComparedRows)) {
      page_.begin_row().name_cell(name_of(row)).count_cell(row["concurrency"]);
      const JsonView each = row["devices_per_client"];
      page_.cell([&] { page_.shown(each, fmt::format("{:.3g}", each.number())); }, true);
      for (const auto& part : api::kAnswerParts) page_.milliseconds_cell(row["answer"][part.field]);
      page_.milliseconds_cell(row["answer_ms"]).end_row();
    }
    page_.end_table();
    write_token_times();
    page_.end_section();
  }

  BarChart times_chart(bool is_of_devices) const {
    BarChart chart;
    chart.title = "time of an answer by cause";
    chart.names_width = 120;
    chart.bars_width = 360;
    chart.ends_width = 170;
    for (const auto& part : api::kAnswerParts) chart.kinds.emplace_back(part.words);
    for (const auto& [row, loss] : compared_rows(search_, kComparedRows)) {
      StackedBar bar{name_of(row), {}, loss_text(loss)};
      const double scale = is_of_devices ? row["devices_per_client"].number() : 1;
      for (size_t p = 0; p < std::size(api::kAnswerParts); ++p) {
        const JsonView ms = row["answer"][api::kAnswerParts[p].field];
        bar.parts.push_back({p, ms, ms.number() * scale, milliseconds_text(ms)});
      }
      chart.bars.push_back(std::move(bar));
    }
    fit_texts(chart);
    return chart;
  }

  void write_token_times() {
    page_.html().open("details").element("summary", "TTFT and TPOT by cause, as a table");
    page_.begin_table({"layout", "#TTFT", "#own prompt", "#engine", "#waiting for a turn",
                       "#waiting for a place", "#TPOT", "#step", "#engine", "#other prompts"});
    for (const auto& [row, loss] : compared_rows(search_, kComparedRows)) {
      page_.begin_row().name_cell(name_of(row)).milliseconds_cell(row["ttft_ms"]);
      for (const char* part : {"prompt_ms", "host_ms", "turn_ms", "queue_ms"})
        page_.milliseconds_cell(row["ttft"][part]);
      page_.milliseconds_cell(row["tpot_ms"]);
      const JsonView tpot = row["tpot"];
      for (const char* part : {"step_ms", "host_ms", "other_prompts_ms"})
        page_.milliseconds_cell(tpot.is_null() ? tpot : tpot[part]);
      page_.end_row();
    }
    page_.end_table();
    page_.html().close();
  }

  void write_layouts() {
    page_.begin_section("The best row of every layout");
    std::vector<std::string> titles{"layout", "loses by",        "#devices",    clients_title(),
                                    "#fit",   "#weights",        "#a sequence", "#TTFT",
                                    "#TPOT",  "#tokens/s/device"};
    const bool survives = search_["survive"].count() > 0;
    if (survives) titles.emplace_back("falls back to");
    page_.begin_table(titles);
    for (const auto& [row, loss] : compared_rows(search_, kMostLayouts)) {
      page_.begin_row().name_cell(name_of(row));
      loss ? write_loss_cell(page_, loss) : (void)page_.text_cell("the best");
      page_.count_cell(row["devices"]).count_cell(row["concurrency"]);
      page_.count_cell(row["concurrency_that_fits"]);
      page_.bytes_cell(row["weights_bytes"]).bytes_cell(row["sequence_bytes"]);
      page_.milliseconds_cell(row["ttft_ms"]).milliseconds_cell(row["tpot_ms"]);
      page_.tokens_cell(row["tokens_per_s_per_device"]);
      if (survives) page_.name_cell(row["fallback"]["name"].text());
      page_.end_row();
    }
    page_.end_table();
    page_.note("Weights and the cache of a sequence are those of the fullest device.");
    note_experts(page_, rows_);
    const size_t all = search_["losses"].size() + 1;
    page_.note_rest(all, kMostLayouts);
    page_.end_section();
  }

  void write_moves() {
    page_.begin_section("Moving there from " + search_["from"].text());
    page_.begin_table({"layout", "#moved", "#kept", "#moved, ranks renumbered", "#peak of a device",
                       "#time, at least"});
    for (const auto& [row, loss] : compared_rows(search_, kMostLayouts)) {
      if (!row.has("move")) continue;
      const JsonView move = row["move"];
      page_.begin_row().name_cell(name_of(row)).bytes_cell(move["bytes_moved"]);
      page_.bytes_cell(move["bytes_kept"]);
      page_.cell(
          [&] {
            if (move.has("renumbered_bytes_moved")) page_.bytes(move["renumbered_bytes_moved"]);
          },
          true);
      page_.bytes_cell(move["peak_bytes"]).milliseconds_cell(move["time_ms"]).end_row();
    }
    page_.end_table();
    page_.note(
        "Weights of all devices, sent directly to those that lack them; caches do not move.");
    page_.end_section();
  }

  void write_bindings() {
    if (search_["binds"].empty()) return;
    page_.begin_section("What keeps a better layout away");
    page_.begin_table({"constraint", "layout", "#would be better by", "found"});
    for (const JsonView& bind : search_["binds"].elements()) {
      page_.begin_row().text_cell(bind["constraint"].text()).text_cell(bind["layout"].text());
      page_.cell(
          [&] {
            if (bind.has("gain")) page_.fraction(bind["gain"]);
          },
          true);
      page_.text_cell(bind["reason"].text()).end_row();
    }
    page_.end_table().end_section();
  }

  void write_refused() {
    if (search_["refused"].empty()) return;
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> groups;
    for (const JsonView& refused : search_["refused"].elements())
      groups[{refused["constraint"].text(), refused["reason"].text()}].push_back(
          refused["name"].text());
    page_.begin_section("Excluded layouts");
    page_.begin_table({"constraint", "#layouts", "such as", "reason"});
    for (const auto& [why, names] : groups) {
      page_.begin_row().text_cell(why.first);
      page_.cell([&] { page_.text(fmt::format("{}", names.size())); }, true);
      page_.text_cell(names.front()).text_cell(why.second).end_row();
    }
    page_.end_table().end_section();
  }

  Page& page_;
  const JsonView& search_;
  JsonView rows_;
  plan::Objective objective_{};
  std::optional<JsonView> best_;
};

}  // namespace

void write_plan_search(Page& page, const JsonView& search) {
  SearchPage(page, search).write();
}

}  // namespace shardtool::cli
