#include "lib/mapping/resolve/resolution.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/layout/gathered.h"

namespace shardtool::mapping {

std::vector<layout::IndexAxis> index_axes(const ResolvedTensor& tensor) {
  std::vector<layout::IndexAxis> axes = tensor.layout->index_axes();
  for (size_t i = 0; i < tensor.numbers.size(); ++i) axes[i].index = tensor.numbers[i];
  return axes;
}

std::string why(const ResolvedTensor& tensor) {
  const std::string& layers = tensor.by->where;
  std::string text =
      fmt::format("rule '{}' ({}){} ", tensor.by->rule, line_of(tensor.by->rule_place),
                  layers.empty() ? "" : fmt::format(", for layers of which {},", layers));
  std::vector<std::string> cuts;
  for (size_t a = 0; a < tensor.layout->axes().size(); ++a) {
    const layout::LayoutAxis& axis = tensor.layout->axes()[a];
    if (axis.expr.is_sharded())
      cuts.push_back(fmt::format("cuts {} as {}", axis_name(axis, a), to_string(axis.expr)));
  }
  for (const layout::IndexAxis& axis : index_axes(tensor)) {
    cuts.push_back(fmt::format("puts it where index {} of '{}' lives, {}",
                               fmt::join(axis.indices(), " or "), axis.logical,
                               to_string(axis.expr)));
  }
  return text + (cuts.empty() ? "keeps it whole on every device"
                              : fmt::format("{}", fmt::join(cuts, ", and ")));
}

std::vector<std::shared_ptr<const layout::Layout>> computed_layouts(const Resolution& resolution) {
  std::map<const layout::Layout*, std::shared_ptr<const layout::Layout>> computed;
  std::vector<std::shared_ptr<const layout::Layout>> layouts;
  for (const ResolvedTensor& tensor : resolution.tensors) {
    const bool is_gathered = std::ranges::any_of(resolution.gathered, [&](const std::string& axis) {
      return is_cut_along(*tensor.layout, axis);
    });
    auto& layout = computed[tensor.layout.get()];
    if (!layout && !is_gathered) layout = tensor.layout;
    if (!layout)
      layout =
          std::make_shared<const layout::Layout>(gathered(*tensor.layout, resolution.gathered));
    layouts.push_back(layout);
  }
  return layouts;
}

}  // namespace shardtool::mapping
