#pragma once

#include <string>

#include "lib/tutorial/demo.h"

namespace shardtool::tutorial {

/// Everything of a report, so that two can be compared: floats with all their digits.
std::string text_of(const DemoReport& report);

}  // namespace shardtool::tutorial
