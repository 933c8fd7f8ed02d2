#include "cli/print/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "cli/print/output.h"
#include "lib/base/json_writer.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";
constexpr double kFirstAfter = 0.5;  // seconds; short runs print no progress
constexpr double kBarEvery = 0.1;    // seconds; ten frames per second
constexpr double kLineEvery = 10;    // seconds between lines in a log
constexpr double kRateMemory = 3;    // time constant of the average rate in seconds
constexpr size_t kMaxCells = 24;
constexpr size_t kLeastCells = 8;  // of a bar with an item beside it
constexpr size_t kItemSpace = 16;  // columns reserved for the item

double fraction(const exec::Progress& progress) {
  if (progress.bytes_total <= 0) return 0;
  const auto done = static_cast<double>(progress.bytes_done);
  return std::clamp(done / static_cast<double>(progress.bytes_total), 0.0, 1.0);
}

/// Remaining seconds at the recent rate, negative if unknown.
double eta_seconds(const ProgressState& state) {
  if (state.bytes_per_second <= 0) return -1;
  const auto left = static_cast<double>(state.progress.bytes_total - state.progress.bytes_done);
  return std::max(left, 0.0) / state.bytes_per_second;
}

/// "0:03", "12:40", "3:05:00".
std::string clock_text(double seconds) {
  if (seconds < 0) return "-:--";
  const auto total = static_cast<i64>(std::min(std::ceil(seconds), 359'999.0));
  const auto minutes = total / 60;
  if (minutes < 60) return fmt::format("{}:{:02}", minutes, total % 60);
  return fmt::format("{}:{:02}:{:02}", minutes / 60, minutes % 60, total % 60);
}

std::string rate_text(double bytes_per_second) {
  return format_bytes(static_cast<i64>(bytes_per_second)) + "/s";
}

/// "8.87/14.96 GiB", or with two units where they differ.
std::string bytes_text(const exec::Progress& progress) {
  auto done = format_bytes(progress.bytes_done);
  const auto total = format_bytes(progress.bytes_total);
  const auto unit = total.substr(total.find(' '));
  if (done.ends_with(unit)) done.resize(done.size() - unit.size());
  return done + "/" + total;
}

std::string facts(const ProgressState& state) {
  return fmt::format("{:.1f}%  {}  {}  ETA {}", 100 * fraction(state.progress),
                     bytes_text(state.progress), rate_text(state.bytes_per_second),
                     clock_text(eta_seconds(state)));
}

std::string cells(double filled_part, size_t count) {
  const auto filled = static_cast<size_t>(filled_part * static_cast<double>(count));
  const auto head = filled < count ? ">" + std::string(count - filled - 1, '.') : "";
  return std::string(filled, '#') + head;
}

double steady_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace

ProgressMode progress_mode(std::string_view how, bool is_terminal, bool quiet) {
  if (quiet || how == "never") return ProgressMode::kNone;
  if (how == "json") return ProgressMode::kJson;
  return how == "always" || is_terminal ? ProgressMode::kBar : ProgressMode::kLines;
}

size_t terminal_width(int fd) {
  constexpr size_t kDefault = 80;
  winsize size{};
  const bool known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kDefault;
}

std::string progress_bar(const ProgressState& state, size_t width) {
  constexpr std::string_view kFrame = "  [] ";
  constexpr size_t kLeastItem = 12;
  const size_t limit = width > 0 ? width - 1 : 0;  // a full line would wrap
  const auto text = facts(state);
  const size_t used = state.verb.size() + kFrame.size() + text.size();
  const size_t room = used < limit ? limit - used : 0;
  // On a narrow terminal the bar needs the room more than the item does.
  const bool shows_item = room >= kLeastCells + kItemSpace;
  const size_t count = std::min(kMaxCells, shows_item ? room - kItemSpace : room);
  auto line = fmt::format("{}  [{}] {}", state.verb, cells(fraction(state.progress), count), text);
  const auto item = quote_for_message(state.progress.item);
  if (line.size() + 2 + item.size() <= limit) {
    line += "  " + item;
  } else if (line.size() + kLeastItem <= limit) {
    const size_t cut = item.size() - (limit - line.size() - 5);
    line += "  ..." + item.substr(character_boundary(item, cut));
  }
  return line.substr(0, limit);
}

std::string progress_line(const ProgressState& state) {
  return fmt::format("{}  {}  {}", state.verb, facts(state),
                     quote_for_message(state.progress.item));
}

std::string progress_json(const ProgressState& state, std::string_view message_type) {
  std::string line;
  JsonWriter json([&line](std::string_view text) { line += text; });
  json.begin_object().field("message_type", message_type);
  json.field("bytes_done", state.progress.bytes_done);
  json.field("bytes_total", state.progress.bytes_total);
  json.field("rate", state.bytes_per_second).key("eta_s");
  const double eta = eta_seconds(state);
  eta < 0 ? json.null() : json.value(eta);
  json.field("item", state.progress.item).end_object();
  return line;
}

ProgressPrinter::ProgressPrinter(ProgressMode mode, size_t width, Clock clock, Sink sink,
                                 std::string_view verb)
    : mode_(mode),
      width_(width),
      clock_(std::move(clock)),
      sink_(std::move(sink)),
      started_(clock_()),
      shown_(started_),
      measured_(started_) {
  state_.verb = verb;
}

void ProgressPrinter::update(const exec::Progress& progress) {
  if (mode_ == ProgressMode::kNone) return;
  const double now = clock_();
  measure(progress, now);
  const double wait = mode_ == ProgressMode::kLines ? kLineEvery
                      : visible_                    ? kBarEvery
                                                    : kFirstAfter;
  if (now - shown_ < wait) return;
  shown_ = now;
  visible_ = true;
  switch (mode_) {
    case ProgressMode::kNone:
      return;
    case ProgressMode::kBar:
      return sink_(std::string(kClearLine) + progress_bar(state_, width_));
    case ProgressMode::kLines:
      return sink_(progress_line(state_) + "\n");
    case ProgressMode::kJson:
      return sink_(progress_json(state_, "status"));
  }
}

/// The rate is an average whose weights fade with time: bursts between frames do not show.
void ProgressPrinter::measure(const exec::Progress& progress, double now) {
  state_.progress = progress;
  const double elapsed = now - measured_;
  if (elapsed < kBarEvery) return;
  const auto moved = static_cast<double>(progress.bytes_done - measured_bytes_);
  const double keep = state_.bytes_per_second > 0 ? std::exp(-elapsed / kRateMemory) : 0;
  state_.bytes_per_second = keep * state_.bytes_per_second + (1 - keep) * moved / elapsed;
  measured_ = now;
  measured_bytes_ = progress.bytes_done;
}

void ProgressPrinter::finish() {
  if (mode_ == ProgressMode::kBar && visible_) sink_(kClearLine);
  if (mode_ == ProgressMode::kJson) {
    const double elapsed = clock_() - started_;
    if (state_.bytes_per_second == 0 && elapsed > 0)  // ended before the rate was measured
      state_.bytes_per_second = static_cast<double>(state_.progress.bytes_done) / elapsed;
    sink_(progress_json(state_, "summary"));
  }
  mode_ = ProgressMode::kNone;
}

ProgressPrinter stderr_progress(ProgressMode mode, std::string_view verb) {
  const auto show = [](std::string_view text) {
    const bool clears = text.starts_with(kClearLine);
    if (clears) std::fwrite(kClearLine.data(), 1, kClearLine.size(), stderr);
    write_to_stderr(text.substr(clears ? kClearLine.size() : 0));
  };
  return {mode, terminal_width(STDERR_FILENO), steady_seconds, show, verb};
}

}  // namespace shardtool::cli
