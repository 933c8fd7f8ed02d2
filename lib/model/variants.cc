#include "lib/model/variants.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/mapping/document/config_number.h"
#include "lib/model/graph/requirement.h"

namespace shardtool::model {

bool is_allowed(const Way& way, const mapping::ModelConfig& config, i64 layer) {
  if (first_unmet(way.requires_config, config) != nullptr) return false;
  return !way.layers || contains(*way.layers, config, layer);
}

bool has_inputs(const Way& way, std::set<std::string> made) {
  for (const Op& op : way.ops) {
    const auto is_made = [&](const std::string& name) { return made.contains(name); };
    if (!std::ranges::all_of(op.in, is_made)) return false;
    made.insert(op.out.begin(), op.out.end());
  }
  return true;
}

bool makes_words(const mapping::ModelConfig& config) {
  const auto architectures = config.architectures();
  const auto ends_with = [&](std::string_view end) {
    return !architectures.empty() && architectures.front().ends_with(end);
  };
  return ends_with("ForCausalLM") || ends_with("ForConditionalGeneration");
}

OwnHead own_head(const mapping::ModelConfig& config) {
  if (!makes_words(config)) return OwnHead::kNo;
  const std::string outer = mapping::said_at("tie_word_embeddings", config);
  const std::string inner = mapping::said_at("text_config.tie_word_embeddings", config);
  if ((outer == "null" ? inner : outer) != "false") return OwnHead::kNo;
  return inner == "true" ? OwnHead::kUnclear : OwnHead::kYes;
}

i64 count_of(const ops::ModelSizes& sizes, const Dim& number, std::string_view what) {
  constexpr i64 kMost = 1 << 16;
  const i64 count = sizes.size(number);
  if (count <= kMost) return count;
  throw Error(ErrorCode::kConfig,
              fmt::format("a stack of {} {} is more than a graph may have", count, what))
      .note("found", fmt::format("{} = {}", number.text, count))
      .note("expected", fmt::format("at most {}", kMost))
      .help(fmt::format("correct the number of {} in {}", what, sizes.config.file()));
}

}  // namespace shardtool::model
