#include "lib/api/planning/kv_heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::api {
namespace {

struct NamedBits {
  const char* name;
  int bits;
};
/// What people and config.json call the types that a cache is kept in.
constexpr auto kNamedBits = std::to_array<NamedBits>({
    {"bf16", 16},
    {"fp16", 16},
    {"fp8", 8},
    {"int8", 8},
    {"fp4", 4},
    {"int4", 4},
    {"fp32", 32},
    {"bfloat16", 16},
    {"float16", 16},
    {"float32", 32},
    {"half", 16},
    {"float8_e4m3fn", 8},
    {"float8_e5m2", 8},
});

/// The section of the axis that makes keys: of a fused q, k, v the second.
const layout::AxisExpr& keys_of(const layout::AxisExpr& axis) {
  const auto* concat = std::get_if<layout::Concat>(&axis.node());
  constexpr size_t kQueryKeyValue = 3;
  return concat != nullptr && concat->sections.size() == kQueryKeyValue ? concat->sections[1]
                                                                        : axis;
}

/// The axis along which heads are counted, or null.
const layout::LayoutAxis* heads_axis(const layout::Layout& layout) {
  for (const layout::LayoutAxis& axis : layout.axes()) {
    if (axis.logical.find("heads") != std::string::npos) return &axis;
  }
  return nullptr;
}

/// Elements per token that the device caches of a layer whose projection it has.
i64 elements_on(const mapping::LayerCache& layer, const layout::Layout& layout, i64 rank) {
  const layout::LayoutAxis* axis = heads_axis(layout);
  if (layer.latent || axis == nullptr) return layer.units * layer.unit_elements;
  const layout::AxisExpr& keys = keys_of(axis->expr);
  const i64 held = evaluate(keys, layout.mesh(), rank).image_size();
  return ceil_div(held * layer.units, keys.size()) * layer.unit_elements;
}

/// (elements, window, stride) -> number of layers.
using Alike = std::map<std::tuple<i64, i64, i64>, i64>;

std::vector<plan::CachedLayers> as_list(const Alike& alike) {
  std::vector<plan::CachedLayers> list;
  for (const auto& [kind, layers] : alike) {
    const auto& [elements, window, stride] = kind;
    list.push_back({elements, window, layers, stride});
  }
  return list;
}

void note_unknown_heads(const mapping::ResolvedTensor& resolved, const std::string& name,
                        std::vector<std::string>& notes) {
  if (!resolved.layout->is_sharded() || heads_axis(*resolved.layout) != nullptr) return;
  constexpr std::string_view kBegin = "the mapping does not say along which axis";
  const bool is_known = std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
    return note.starts_with(kBegin);
  });
  if (is_known) return;
  notes.push_back(fmt::format(
      "{} of '{}' heads are cut: the KV cache is counted with all heads on every device", kBegin,
      name));
}

}  // namespace

int dtype_bits(const std::string& name) {
  const auto found = std::find_if(kNamedBits.begin(), kNamedBits.end(),
                                  [&](const NamedBits& known) { return name == known.name; });
  if (found != kNamedBits.end()) return found->bits;
  std::vector<std::string> names;
  for (const NamedBits& known : kNamedBits) names.emplace_back(known.name);
  Error error(ErrorCode::kUsage,
              fmt::format("'{}' is no type for a KV cache", quote_for_message(name)));
  if (const auto hint = did_you_mean(name, names); !hint.empty()) error.help(hint);
  throw std::move(error).help("known are: bf16, fp16, fp8, int8, fp4, int4, fp32");
}

DeviceCaches device_caches(const AppliedMapping& applied, const mapping::ModelConfig* config,
                           const std::string& kv_dtype) {
  DeviceCaches caches;
  const auto n_devices = static_cast<size_t>(applied.resolution.mesh.size());
  caches.layers.resize(n_devices);
  caches.cross.resize(n_devices);
  if (!kv_dtype.empty()) caches.bits = dtype_bits(kv_dtype);
  if (config == nullptr) {
    caches.model.notes.emplace_back("there is no config.json: no KV cache is counted");
    return caches;
  }
  caches.model = mapping::attention_cache(*config, applied.specs, applied.resolution.axis_sizes);
  const mapping::AttentionCache& cache = caches.model;
  if (kv_dtype.empty() && cache.dtype) caches.bits = dtype_bits(*cache.dtype);
  std::vector<const mapping::ResolvedTensor*> resolved(applied.specs.size(), nullptr);
  for (const auto& tensor : applied.resolution.tensors) resolved[tensor.tensor] = &tensor;
  std::vector<Alike> alike(n_devices);
  std::vector<Alike> cross(n_devices);
  for (const mapping::LayerCache& layer : cache.layers) {
    const mapping::ResolvedTensor* tensor = resolved[layer.tensor];
    if (tensor == nullptr) continue;
    note_unknown_heads(*tensor, applied.specs[layer.tensor].name, caches.model.notes);
    const layout::Layout& layout = *tensor->layout;
    for (const i64 rank : layout.ranks()) {
      auto& of_rank = (layer.cross ? cross : alike)[static_cast<size_t>(rank)];
      ++of_rank[{elements_on(layer, layout, rank), layer.window, layer.stride}];
    }
  }
  for (size_t rank = 0; rank < n_devices; ++rank) {
    caches.layers[rank] = as_list(alike[rank]);
    caches.cross[rank] = as_list(cross[rank]);
  }
  return caches;
}

}  // namespace shardtool::api
