#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardtool::engine {

/// Returns the possible names of a quantised weight's scales: the suffixes of DeepSeek and vLLM
/// after its name, and DeepSeek V4's suffix instead of "weight".
inline std::vector<std::string> scale_names(std::string_view weight) {
  constexpr std::string_view kWeight = ".weight";
  const std::string name(weight);
  std::vector<std::string> names{name + "_scale_inv", name + "_scale"};
  if (name.ends_with(kWeight)) {
    names.push_back(name.substr(0, name.size() - kWeight.size()) + ".scale");
  }
  return names;
}

}  // namespace shardtool::engine
