#include "lib/mapping/facts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/base/strict_json.h"
#include "lib/mapping/embedded.h"

namespace shardtool::mapping {

nlohmann::json facts(std::string_view name) {
  constexpr int kMaxDepth = 16;
  const auto files = embedded_facts();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [name](const EmbeddedFile& file) { return file.name == name; });
  const std::string file = "facts/" + std::string(name) + ".json";
  if (found == files.end()) throw Error(ErrorCode::kInternal, "there is no " + file);
  return parse_strict_json(found->text, file, ErrorCode::kInternal, kMaxDepth).value;
}

}  // namespace shardtool::mapping
