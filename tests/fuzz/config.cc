// A model's config.json.
#include "lib/mapping/document/config.h"

#include <nlohmann/json.hpp>

#include "lib/mapping/presets.h"
#include "lib/mapping/quantization.h"
#include "tests/fuzz/property.h"
#include "tests/fuzz/targets.h"

namespace shardtool::fuzz {

void config(std::string_view input) {
  const auto read = accepted([&] { return mapping::parse_config(input, "config.json"); });
  if (!read) return;
  const auto* root = read->find("");
  holds(root != nullptr && root->is_object(), "a config that is no object was accepted");
  const bool has_word = input.find("Infinity") != input.npos ||  // extensions of Python, not JSON
                        input.find("NaN") != input.npos;
  holds(has_word || nlohmann::json::parse(input) == *root, "another reader sees another config");
  for (const std::string& path : read->size_paths()) {
    const auto size = accepted([&] { return read->size(path); });
    holds(!size || !*size || **size >= 1, "a size below 1");
  }
  const auto text = accepted([&] { return read->text("model_type"); });
  holds(text && text->value_or("") == read->model_type(), "two model types");
  accepted([&] { return mapping::detect_preset(*read, {}); });
}

}  // namespace shardtool::fuzz
