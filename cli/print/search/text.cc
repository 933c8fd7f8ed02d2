#include "cli/print/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/print/search/search.h"
#include "cli/print/search/words.h"
#include "cli/print/table.h"
#include "lib/base/text.h"
#include "lib/plan/collective/collective_time.h"

namespace shardtool::cli {
namespace {

using plan::Objective;

constexpr const char* kNoTime = "-";  ///< for a time that an answer does not have
constexpr size_t kShownLayouts = 10;
constexpr size_t kCommentLayouts = 25;  ///< of a comment, which is scrolled

std::string name_of(const api::SearchOptions& options, const api::ServingRow& row) {
  const bool has_others = options.plan.sources.size() > 1;
  return row_name(
      to_string(row.layout),
      {row.sequence_parallel, row.kv_dtype, has_others ? std::string_view(row.model.source) : "",
       row.model.dtype ? to_string(*row.model.dtype) : "", row.cap()});
}

/// "12 %: collectives"; empty for the optimum.
std::string loss_text(const api::Loss& loss) {
  return loss.reason.empty() ? "" : loss_words(loss.by, loss.reason);
}

void print_line(Session& session, std::string_view label, const std::string& text) {
  session.out().write(labelled(session.out_style(), label, text));
}

/// "64 clients", or "3 requests/s, 41 at once".
std::string served_text(const api::SearchOptions& options, const api::ServingRow& row) {
  if (!options.request_rate) return plural(row.concurrency, "client");
  return fmt::format("{:g} requests/s, {} at once", *options.request_rate,
                     format_count(row.concurrency));
}

std::string tpot_text(const plan::Offer& offer) {
  return offer.tpot_us ? plan::format_modelled_us(*offer.tpot_us) : kNoTime;
}

std::string best_text(const api::SearchOptions& options, const api::SearchReport& report) {
  const api::ServingRow& best = report.rows[*report.optimum];
  return fmt::format("{} on {} with {}: {}; TTFT {}, TPOT {}", name_of(options, best),
                     plural(best.layout.devices(), "device"), served_text(options, best),
                     value_text(report.value, options.objective),
                     plan::format_modelled_us(best.offer.ttft_us), tpot_text(best.offer));
}

std::string bound_text(const api::SearchOptions& options, const api::SearchReport& report) {
  return fmt::format("no layout has {} than {}", beyond_bound(options.objective),
                     value_text(report.bound, options.objective));
}

/// Says why the runner-up lost; empty if there is none.
std::string runner_up_text(const api::SearchOptions& options, const api::SearchReport& report) {
  for (const api::Loss& loss : report.losses) {
    if (loss.row != report.runner_up) continue;
    return runner_up_words(name_of(options, report.rows[loss.row]),
                           name_of(options, report.rows[*report.optimum]), loss.by, loss.reason);
  }
  return {};
}

/// "6.2 GB in 21 ms" for a row's move; "nothing" for that of today's layout.
std::string moved_text(const api::ServingRow& row) {
  if (!row.move) return "";
  if (row.move->bytes_moved == 0) return "nothing";
  return fmt::format("{} in {}", format_bytes(row.move->bytes_moved),
                     plan::format_modelled_us(row.move->us));
}

/// Says what the move to a layout takes; empty without one.
std::string move_text(const api::SearchOptions& options, const api::ServingRow& row) {
  if (!row.move) return {};
  const api::LayoutMove& move = *row.move;
  const std::string from = quote_for_message(*options.from);
  if (move.bytes_moved == 0) return fmt::format("from {} to the best layout: nothing", from);
  std::string text = fmt::format("from {} to the best layout: {} at least", from, moved_text(row));
  if (move.renumbered && *move.renumbered < move.bytes_moved)
    text += fmt::format(", {} if ranks are renumbered", format_bytes(*move.renumbered));
  return text;
}

/// Says which layout holds the load when devices are lost; empty if none are to be.
std::string fallback_text(const api::SearchOptions& options, const api::ServingRow& row) {
  if (!row.fallback) return {};
  return fmt::format("with {} lost, {} on {} holds the load", plural(options.survive, "device"),
                     to_string(*row.fallback), plural(row.fallback->devices(), "device"));
}

std::string binding_text(const api::Binding& binding) {
  const std::string gain = binding.gain > 0
                               ? fmt::format(" would be {} better{}", percent_text(binding.gain),
                                             binding.row ? ", at " : ": ")
                               : ": ";
  return fmt::format("{}: {}{}{}", binding.constraint, binding.layout, gain, binding.reason);
}

std::string model_text(const api::SearchOptions& options) {
  return fmt::format(
      "times are modelled on {}: passes, other clients' prompts, waiting and an engine's own time; "
      "four of five measured TPOT were within {}",
      options.plan.hardware->name, percent_text(plan::kTpotBand));
}

std::string load_text(const api::SearchOptions& options) {
  std::string text = fmt::format("prompts of {} tokens", format_count(options.prompt_len));
  if (options.cached_tokens() > 0)
    text += fmt::format(", {} of them cached,", format_count(options.cached_tokens()));
  return text + fmt::format(" and answers of {}", format_count(options.answer_len));
}

std::vector<std::string> cells_of(const api::SearchOptions& options, const api::ServingRow& row,
                                  const std::string& loses) {
  std::vector<std::string> cells{name_of(options, row),
                                 format_count(row.layout.devices()),
                                 format_count(row.concurrency),
                                 format_count(row.fits),
                                 plan::format_modelled_us(row.offer.ttft_us),
                                 tpot_text(row.offer),
                                 tokens_text(plan::value_of(row.offer, Objective::kThroughput)),
                                 loses};
  if (options.from) cells.push_back(moved_text(row));
  if (row.fallback) cells.push_back(to_string(*row.fallback));
  return cells;
}

/// Returns the rows of the first losses, at most `most`.
Table rows_table(const api::SearchOptions& options, const api::SearchReport& report,
                 const std::vector<api::Loss>& losses, size_t most) {
  Table table{{{"layout"},
               {"devices", true},
               {options.request_rate ? "at once" : "clients", true},
               {"fit", true},
               {"TTFT", true},
               {"TPOT", true},
               {"tokens/s/device", true},
               {"loses by"}},
              {}};
  if (options.from) table.columns.push_back({"moves", true});
  if (options.survive > 0) table.columns.push_back({"falls back to"});
  for (size_t i = 0; i < std::min(most, losses.size()); ++i)
    table.rows.push_back(cells_of(options, report.rows[losses[i].row], loss_text(losses[i])));
  return table;
}

/// The optimum and the losses.
std::vector<api::Loss> best_of_layouts(const api::SearchReport& report) {
  std::vector<api::Loss> all{{*report.optimum, 0, ""}};
  all.insert(all.end(), report.losses.begin(), report.losses.end());
  return all;
}

std::string more_text(size_t all, size_t shown) {
  return all <= shown ? "" : fmt::format("and {} more, see --json", all - shown);
}

void print_rows(Session& session, const api::SearchOptions& options,
                const api::SearchReport& report) {
  const std::vector<api::Loss> all = best_of_layouts(report);
  print_table(session.out(), rows_table(options, report, all, kShownLayouts), TableFormat::kText);
  const std::string more = more_text(all.size(), kShownLayouts);
  if (!more.empty()) print_line(session, "", more);
}

/// Says for each constraint how many layouts it excludes, with the first as an example.
std::vector<std::string> refusal_texts(const api::SearchReport& report) {
  std::map<std::string, std::pair<i64, const api::RefusedLayout*>> groups;
  for (const api::RefusedLayout& refused : report.refused) {
    auto& [count, first] = groups[refused.constraint];
    if (count++ == 0) first = &refused;
  }
  std::vector<std::string> texts;
  for (const auto& [constraint, group] : groups) {
    const auto& [count, first] = group;
    texts.push_back(fmt::format("{} by {}, such as {}: {}", plural(count, "layout"), constraint,
                                to_string(first->layout), first->reason));
  }
  return texts;
}

/// Writes the parts of a comment.
class Comment {
 public:
  Comment(Session& session, const api::SearchOptions& options, const api::SearchReport& report)
      : out_(session.out()), options_(options), report_(report) {}

  void write() {
    paragraph(fmt::format("# Layouts of a server on {}", options_.plan.hardware->name));
    paragraph(verdict());
    if (report_.optimum) {
      section("Layouts", best_of_layouts(report_));
      section("Layouts that no other beats in tokens/s of both a device and a client",
              report_.front);
    }
    list("What keeps a better layout away", bindings());
    list("Excluded", refusal_texts(report_));
    list("Warnings", report_.warnings);
    paragraph(fmt::format("For {}; {}.", load_text(options_), model_text(options_)));
  }

 private:
  void paragraph(const std::string& text) {
    out_.write((is_first_ ? "" : "\n") + text + "\n");
    is_first_ = false;
  }

  std::string verdict() const {
    if (!report_.optimum) return "**No layout fits and keeps the limits.**";
    std::string text = fmt::format("**Best: {}.** By this model {}.", best_text(options_, report_),
                                   bound_text(options_, report_));
    const std::string runner_up = runner_up_text(options_, report_);
    if (!runner_up.empty()) text += " Runner-up: " + runner_up + ".";
    const std::string move = move_text(options_, report_.rows[*report_.optimum]);
    if (!move.empty()) text += " The move " + move + ".";
    const std::string fallback = fallback_text(options_, report_.rows[*report_.optimum]);
    return fallback.empty() ? text : text + " Survival: " + fallback + ".";
  }

  void section(const char* title, const std::vector<api::Loss>& losses) {
    paragraph(fmt::format("## {}", title));
    out_.write("\n");
    print_table(out_, rows_table(options_, report_, losses, kCommentLayouts),
                TableFormat::kMarkdown);
    const std::string more = more_text(losses.size(), kCommentLayouts);
    if (!more.empty()) paragraph(more);
  }

  void list(const char* title, const std::vector<std::string>& items) {
    if (items.empty()) return;
    paragraph(fmt::format("## {}", title));
    out_.write("\n");
    for (const std::string& item : items) out_.write("- " + item + "\n");
  }

  std::vector<std::string> bindings() const {
    std::vector<std::string> texts;
    for (const api::Binding& binding : report_.bindings) texts.push_back(binding_text(binding));
    return texts;
  }

  Output& out_;
  const api::SearchOptions& options_;
  const api::SearchReport& report_;
  bool is_first_ = true;
};

}  // namespace

void print_text(Session& session, const api::SearchOptions& options,
                const api::SearchReport& report) {
  for (const std::string& warning : report.warnings) print_line(session, "warning", warning);
  if (report.optimum) {
    print_line(session, "best", best_text(options, report));
    print_line(session, "bound", bound_text(options, report));
    const std::string runner_up = runner_up_text(options, report);
    if (!runner_up.empty()) print_line(session, "runner-up", runner_up);
    const std::string move = move_text(options, report.rows[*report.optimum]);
    if (!move.empty()) print_line(session, "move", move);
    const std::string fallback = fallback_text(options, report.rows[*report.optimum]);
    if (!fallback.empty()) print_line(session, "survives", fallback);
  } else {
    print_line(session, "none", "no layout fits and keeps the limits");
  }
  for (const api::Binding& binding : report.bindings)
    print_line(session, "binds", binding_text(binding));
  if (report.optimum) print_rows(session, options, report);
  for (const std::string& refusal : refusal_texts(report)) print_line(session, "excluded", refusal);
  print_line(session, "model", model_text(options));
}

void print_markdown(Session& session, const api::SearchOptions& options,
                    const api::SearchReport& report) {
  Comment(session, options, report).write();
}

}  // namespace shardtool::cli
