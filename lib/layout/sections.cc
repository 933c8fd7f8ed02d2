#include "lib/layout/sections.h"

#include <variant>

namespace shardtool::layout {

std::vector<i64> section_begins(const AxisExpr& expr) {
  if (const auto* nest = std::get_if<Nest>(&expr.node())) return section_begins(*nest->of);
  if (const auto* pad = std::get_if<Pad>(&expr.node())) return section_begins(*pad->of);
  std::vector<i64> begins;
  if (const auto* scale = std::get_if<Scale>(&expr.node())) {
    begins = section_begins(*scale->of);
    for (i64& begin : begins) begin *= scale->unit;
  } else if (const auto* concat = std::get_if<Concat>(&expr.node())) {
    i64 begin = 0;
    for (const AxisExpr& section : concat->sections) {
      begins.push_back(begin);
      begin += section.size();
    }
  }
  return begins;
}

}  // namespace shardtool::layout
