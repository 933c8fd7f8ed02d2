#include "lib/mapping/match/unmatched_names.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/mapping/match/companions.h"
#include "lib/mapping/match/rule_matcher.h"
#include "lib/mapping/presets.h"

namespace shardtool::mapping {
namespace {

/// True if a rule or a companion matches every tensor without the first bytes of its name.
bool knows_all(const Mapping& mapping, std::span<const TensorSpec> tensors,
               const ModelConfig* config, size_t skipped) {
  RuleMatcher rules(mapping, config);
  Companions companions(mapping);
  return std::ranges::all_of(tensors, [&](TensorSpec tensor) {
    tensor.name.erase(0, skipped);
    return rules.find(tensor.name) || !companions.find(tensor).empty();
  });
}

}  // namespace

std::vector<std::string> families_that_know(const TensorSpec& tensor) {
  std::vector<std::string> names;
  for (const Preset& family : quantized_families()) {
    const Mapping document({{"preset:" + family.name, std::string(preset_text(family.name))}});
    if (!Companions(document).find(tensor).empty()) names.push_back(family.name);
  }
  return names;
}

std::string unknown_prefix(const Mapping& mapping, std::span<const TensorSpec> tensors,
                           const ModelConfig* config) {
  if (tensors.empty()) return {};
  const std::string& first = tensors.front().name;
  for (size_t dot = first.find('.'); dot != first.npos; dot = first.find('.', dot + 1)) {
    const std::string prefix = first.substr(0, dot + 1);
    const auto has_prefix = [&](const TensorSpec& tensor) {
      return tensor.name.size() > prefix.size() && tensor.name.starts_with(prefix);
    };
    if (!std::ranges::all_of(tensors, has_prefix)) return {};
    try {
      if (knows_all(mapping, tensors, config, prefix.size())) return first.substr(0, dot);
    } catch (const Error&) {
      // Rules that are ambiguous, or that config.json does not decide, know nothing.
    }
  }
  return {};
}

}  // namespace shardtool::mapping
