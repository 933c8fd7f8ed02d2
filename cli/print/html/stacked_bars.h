#pragma once

#include <string>
#include <vector>

#include "cli/print/html/page.h"

namespace shardtool::cli {

/// Part of a bar that shows a value of the document.
struct BarPart {
  size_t kind = 0;  ///< index into BarChart::kinds
  JsonView value;
  double length = 0;  ///< in the chart's unit
  std::string text;   ///< the value with its unit
};

struct StackedBar {
  std::string name;
  std::vector<BarPart> parts;
  std::string end;  ///< text behind the bar
};

/// Bars from one zero, with a key of their kinds. Widths are in pixels.
struct BarChart {
  std::string title;
  std::vector<std::string> kinds;
  std::vector<StackedBar> bars;
  double limit = 0;  ///< where a dashed line is drawn, beyond which bars are hatched; 0: nowhere
  std::string limit_text;
  double names_width = 120;
  double bars_width = 560;
  double ends_width = 120;
};

void write_bars(Page& page, const BarChart& chart);

}  // namespace shardtool::cli
