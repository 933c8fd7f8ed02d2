#include "lib/api/planning/live_widths.h"

#include <algorithm>
#include <map>
#include <string>

#include "lib/mapping/document/name_form.h"

namespace shardtool::api {
namespace {

/// The side of a matrix that is not the residual stream's, on one device; 0 for anything else.
i64 other_side(const Shape& whole, const Shape& local, i64 hidden) {
  if (whole.size() < 2) return 0;
  const size_t row = whole.size() - 2;
  const size_t column = whole.size() - 1;
  if (whole[row] == hidden && whole[column] == hidden) return std::min(local[row], local[column]);
  if (whole[row] == hidden) return local[column];
  return whole[column] == hidden ? local[row] : 0;
}

i64* width_of(const std::string& name, plan::LiveWidths& widths) {
  if (name == "attention") return &widths.attention;
  if (name == "mlp" || name == "experts") return &widths.mlp;
  if (name == "head") return &widths.vocab;
  return nullptr;
}

}  // namespace

std::vector<plan::LiveWidths> live_widths(const AppliedMapping& applied, i64 hidden,
                                          i64 experts_per_token, mapping::TensorClasses& classes) {
  const auto n_devices = static_cast<size_t>(applied.resolution.mesh.size());
  std::vector<plan::LiveWidths> widths(n_devices);
  if (hidden == 0) return widths;
  struct Kind {
    std::string tensor_class;
    std::vector<i64> widest;  // per device
  };
  std::map<std::string, Kind> kinds;
  for (const mapping::ResolvedTensor& resolved : applied.resolution.tensors) {
    const TensorSpec& spec = applied.specs[resolved.tensor];
    if (spec.shape.size() < 2) continue;
    const auto [kind, is_new] = kinds.try_emplace(mapping::name_form(spec.name));
    if (is_new) {
      kind->second.tensor_class = classes.names()[static_cast<size_t>(classes.of(spec.name))];
      kind->second.widest.assign(n_devices, 0);
    }
    const auto& ranks = resolved.layout->ranks();
    for (size_t h = 0; h < ranks.size(); ++h) {
      const Shape local = resolved.layout->holders().local_shape(static_cast<int>(h));
      i64& widest = kind->second.widest[static_cast<size_t>(ranks[h])];
      widest = std::max(widest, other_side(spec.shape, local, hidden));
    }
  }
  for (size_t rank = 0; rank < n_devices; ++rank) {
    widths[rank].hidden = hidden;
    for (const auto& [form, kind] : kinds) {
      const i64 times = kind.tensor_class == "experts" ? experts_per_token : 1;
      if (i64* width = width_of(kind.tensor_class, widths[rank]))
        *width += kind.widest[rank] * times;
    }
  }
  return widths;
}

}  // namespace shardtool::api
