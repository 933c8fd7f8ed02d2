#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/print/html/page.h"

namespace shardtool::cli {

/// A point of a chart that shows a value of the document.
struct ChartPoint {
  double x = 0;
  double y = 0;
  JsonView value;     ///< the document's value for `y`
  std::string title;  ///< said when the reader points at it
};

/// One of a chart's axes, which begin at 0.
struct ChartAxis {
  std::string title;
  double unit = 1;  ///< ticks are 1, 2 or 5 times a power of ten of it
  std::function<std::string(double)> text;
};

/// A line through points from the left to the right.
struct LineChart {
  std::string title;
  ChartAxis x;
  ChartAxis y;
  std::vector<ChartPoint> points;
  bool has_numbers = false;  ///< points are marked and numbered from 1
  bool rings_last = false;   ///< the last point has a ring
  double limit_x = 0;        ///< where a dashed line rises; 0: nowhere
  double limit_y = 0;        ///< where a dashed line lies; 0: nowhere
  std::string limit_text;
};

void write_line_chart(Page& page, const LineChart& chart);

/// Axis of bytes up to about `most`, with ticks of whole KiB, MiB or GiB.
ChartAxis bytes_axis(const std::string& title, double most);

/// Step of an axis with about as many ticks: 1, 2 or 5 times a power of ten.
double tick_step(double most, double ticks = 5);

}  // namespace shardtool::cli
