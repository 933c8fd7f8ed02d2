#pragma once

#include <string>

#include "shardtool/engine/mlp/demo.h"

namespace shardtool::engine::mlp {

/// Everything of a report, so that two can be compared: floats with all their digits.
std::string text_of(const DemoReport& report);

}  // namespace shardtool::engine::mlp
