#include "lib/api/catalogue/layouts.h"

#include <algorithm>

#include "lib/layouts/engine_layout.h"

namespace shardtool::api {

std::vector<LayoutInfo> list_layouts() {
  std::vector<LayoutInfo> list;
  for (const layouts::EngineLayout& layout : layouts::engine_layouts()) {
    LayoutInfo& info = list.emplace_back();
    info.label = layout.label();
    info.description = layout.description;
    for (const layouts::FileNames& names : layout.files) info.files.push_back(names.pattern);
    for (const layouts::LayoutModels& models : layout.models) {
      info.models.push_back({models.model_types, models.proof});
    }
    for (const layouts::Refusal& refusal : layout.refusals) info.refused.push_back(refusal.reason);
    const auto [last, end] =
        std::ranges::unique(info.refused);  // of several forms, one after another
    info.refused.erase(last, end);
    if (!layout.other_axes.empty()) info.refused.push_back(layout.other_axes);
  }
  return list;
}

std::string layout_text(const std::string& label) {
  return std::string(layouts::find_layout(label).text);
}

std::vector<std::string> layout_names() {
  return layouts::layout_names();
}

}  // namespace shardtool::api
