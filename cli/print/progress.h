#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "lib/exec/resources.h"

namespace shardtool::cli {

/// kLines: for a log, one plain line every 30 s.
enum class ProgressMode { kNone, kBar, kLines, kJson };

/// Parses --progress or SHARDTOOL_PROGRESS: "always", "never", "json"; "auto" and empty mean a bar
/// on a terminal and lines elsewhere. Quiet disables progress.
ProgressMode progress_mode(std::string_view how, bool is_terminal, bool quiet);

/// Columns of the terminal on `fd`; 80 if it is not a terminal or reports 0.
size_t terminal_width(int fd);

/// Content of a progress line.
struct ProgressState {
  exec::Progress progress;
  double bytes_per_second = 0;  ///< recent rate; 0 when not known yet
  std::string_view verb = "writing";
};

/// "writing  [####>.....] 59.3%  8.87 GiB/14.96 GiB  1.94 GiB/s  ETA 0:03  name", at most `width`
/// columns: the item is cut first.
std::string progress_bar(const ProgressState& state, size_t width);
/// The same facts without the bar.
std::string progress_line(const ProgressState& state);
/// {"message_type": "status", "bytes_done": ...} on one line.
std::string progress_json(const ProgressState& state, std::string_view message_type);

/// Shows progress on standard error: after half a second, then at most ten times a second.
class ProgressPrinter {
 public:
  using Clock = std::function<double()>;  ///< seconds, steady
  using Sink = std::function<void(std::string_view)>;

  ProgressPrinter(ProgressMode mode, size_t width, Clock clock, Sink sink,
                  std::string_view verb = "writing");

  void update(const exec::Progress& progress);
  /// Clears the bar; with kJson, prints the summary line. Prints no line if there was no update.
  void finish();

 private:
  void measure(const exec::Progress& progress, double now);

  ProgressMode mode_;
  size_t width_;
  Clock clock_;
  Sink sink_;
  double started_;
  double shown_;     ///< time of the last line
  double measured_;  ///< time of the last rate update
  i64 measured_bytes_ = 0;
  bool visible_ = false;
  ProgressState state_;
};

/// Returns a printer on this process's standard error.
ProgressPrinter stderr_progress(ProgressMode mode, std::string_view verb);

}  // namespace shardtool::cli
