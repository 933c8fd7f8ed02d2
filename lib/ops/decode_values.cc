#include "lib/ops/decode_values.h"

namespace shardtool::ops {

using mapping::JsonValue;

Dim decode_dim(const JsonValue& value) {
  return value.located([&] { return mapping::parse_dim(value.text()); });
}

std::vector<Dim> decode_dims(const JsonValue& value) {
  std::vector<Dim> dims;
  for (const JsonValue& dim : value.elements(1)) dims.push_back(decode_dim(dim));
  return dims;
}

Word decode_word(const JsonValue& value) {
  if (value.is_text()) return {"", value.text()};
  Word word;
  value.object({{"config", [&](const JsonValue& v) { word.config = v.nonempty_text(); }, true},
                {"default", [&](const JsonValue& v) { word.value = v.text(); }, true}});
  return word;
}

}  // namespace shardtool::ops
