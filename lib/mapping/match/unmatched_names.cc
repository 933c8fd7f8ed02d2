#include "lib/mapping/match/unmatched_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/text.h"
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

/// True if a rule matches the name. Rules that are ambiguous, or that config.json does not decide,
/// know nothing.
bool knows_name(const Mapping& mapping, const ModelConfig* config, const std::string& name) {
  try {
    return RuleMatcher(mapping, config).find(name).has_value();
  } catch (const Error&) {
    return false;
  }
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

std::string advice_on_wrapper(const Mapping& mapping, const std::string& name,
                              const ModelConfig* config) {
  std::string before;  // a glob of the modules in front
  size_t begin = 0;
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', begin)) {
    const std::string module = name.substr(begin, dot - begin);
    if (begin > 0 && module.size() > 1 && module.front() == '_') {
      if (!knows_name(mapping, config, name.substr(0, begin) + name.substr(dot + 1))) return "";
      return fmt::format(
          "'{0}.' inside of names is a wrapper of PyTorch's: in a mapping file that extends the "
          "model's preset, \"read\": [{{\"name\": \"{1}{0}.**\", \"of\": \"{1}**\"}}] takes it "
          "out",
          quote_for_message(module), quote_for_message(before));
    }
    const bool is_number = module.find_first_not_of("0123456789") == module.npos;
    before += (is_number ? "*" : module) + ".";
    begin = dot + 1;
  }
  return "";
}

bool has_unmerged_adapter(std::span<const TensorSpec> tensors) {
  return std::ranges::any_of(tensors, [](const TensorSpec& tensor) {
    return tensor.name.find(".base_layer.") != tensor.name.npos;
  });
}

}  // namespace shardtool::mapping
