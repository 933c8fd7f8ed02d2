#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/print/html/page.h"

namespace shardtool::cli {

/// Part of a bar.
struct BarPart {
  size_t kind = 0;                ///< index into BarChart::kinds
  std::optional<JsonView> value;  ///< of the document; nullopt: what remains of another value
  double length = 0;              ///< in the chart's unit
  std::string text;               ///< the value with its unit
};

struct StackedBar {
  std::string name;
  std::vector<BarPart> parts;
  std::string end;   ///< text behind the bar
  double limit = 0;  ///< where a dashed line is drawn, beyond which the bar is hatched; 0: nowhere
};

/// Bars from one zero, with a key of their kinds. Widths are in pixels.
struct BarChart {
  std::string title;
  std::vector<std::string> kinds;
  std::vector<StackedBar> bars;
  std::string limit_text;    ///< above the line, if all bars have the same limit
  size_t bars_together = 1;  ///< bars that stand close to each other, such as before and after
  double names_width = 120;
  double bars_width = 560;
  double ends_width = 120;
};

/// Widens the room for names and ends to the longest ones.
void fit_texts(BarChart& chart);
void write_bars(Page& page, const BarChart& chart);

}  // namespace shardtool::cli
