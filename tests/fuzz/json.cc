// Compares our strict JSON reader, as a tree and value by value, with nlohmann's.
#include <nlohmann/json.hpp>

#include "lib/base/json_reader.h"
#include "lib/base/strict_json.h"
#include "tests/fuzz/property.h"
#include "tests/fuzz/targets.h"

namespace shardtool::fuzz {
namespace {

constexpr int kDepth = 16;

bool skips(std::string_view text) {
  return accepted([&] {
           JsonReader in(text, {"f", ErrorCode::kHeaderJson}, kDepth);
           in.skip();
           in.finish();
           return true;
         })
      .has_value();
}

}  // namespace

void json(std::string_view input) {
  const auto read =
      accepted([&] { return parse_strict_json(input, "f", ErrorCode::kHeaderJson, kDepth); });
  if (!read) return;
  holds(skips(input), "a tree was read of what cannot be skipped");
  holds(nlohmann::json::parse(input) == read->value, "another reader sees another document");
  holds(parse_strict_json(read->value.dump(), "again", ErrorCode::kHeaderJson, kDepth).value ==
            read->value,
        "written and read again, the document differs");
  const nlohmann::json pointers = read->value.flatten();
  for (const auto& member : pointers.items()) {
    holds(read->place(member.key()).line >= 1, "a value has no place");
  }
}

}  // namespace shardtool::fuzz
