#include "lib/api/planning/plan_diff.h"

#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "lib/api/planning/plan_file.h"
#include "lib/base/error.h"
#include "lib/base/strict_json.h"
#include "lib/store/local/file.h"

namespace shardtool::api {
namespace {

using nlohmann::json;

/// Keys of a plan that are not compared.
constexpr std::array<const char*, 8> kBeside{"format_version", "tool",  "command", "source",
                                             "warnings",       "apply", "seal",    "status"};

json read_document(const std::string& path) {
  json document = parse_strict_json(store::read_text(path, kMaxPlanBytes), path,
                                    ErrorCode::kPlanInvalid, kMaxPlanDepth)
                      .value;
  if (!document.is_object() || document.value("command", "") != "plan") {
    throw Error(ErrorCode::kPlanInvalid, "the file is not a document of `shardtool plan`")
        .at({path, 0, 0, {}})
        .help("compare files of `plan -o FILE` or of `plan --json`");
  }
  for (const char* key : kBeside) document.erase(key);
  return document;
}

/// Returns the key of a list's element: its name or rank, or else its index.
std::string name_of(const json& element, size_t number) {
  for (const char* key : {"name", "rank", "axis", "what"}) {
    if (!element.is_object() || !element.contains(key)) continue;
    const json& name = element.at(key);
    return name.is_string() ? name.get<std::string>() : name.dump();
  }
  return std::to_string(number);
}

using Values = std::map<std::string, std::string>;

void flatten(const json& value, const std::string& field, Values& values) {
  const std::string prefix = field.empty() ? field : field + "/";
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) flatten(member, prefix + key, values);
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i)
      flatten(value[i], prefix + name_of(value[i], i), values);
  } else {
    values[field] = value.dump();
  }
}

}  // namespace

PlanDiff diff_plans(const std::string& path_a, const std::string& path_b) {
  Values a;
  Values b;
  flatten(read_document(path_a), "", a);
  flatten(read_document(path_b), "", b);
  PlanDiff diff;
  for (auto at_a = a.begin(), at_b = b.begin(); at_a != a.end() || at_b != b.end();) {
    const bool only_a = at_b == b.end() || (at_a != a.end() && at_a->first < at_b->first);
    const bool only_b = at_a == a.end() || (at_b != b.end() && at_b->first < at_a->first);
    if (only_a) {
      diff.changes.push_back({at_a->first, at_a->second, ""});
    } else if (only_b) {
      diff.changes.push_back({at_b->first, "", at_b->second});
    } else if (at_a->second != at_b->second) {
      diff.changes.push_back({at_a->first, at_a->second, at_b->second});
    }
    if (!only_b) ++at_a;
    if (!only_a) ++at_b;
  }
  return diff;
}

}  // namespace shardtool::api
