#pragma once

#include <string>

#include "lib/tutorial/demo.h"

namespace shardtool::tutorial {

/// Full text of a report for comparison: floats with all their digits.
std::string text_of(const DemoReport& report);

}  // namespace shardtool::tutorial
