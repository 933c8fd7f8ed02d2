#include "lib/api/planning/plan_diff.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "lib/api/planning/page_island.h"
#include "lib/api/planning/plan_file.h"
#include "lib/base/error.h"
#include "lib/base/strict_json.h"
#include "lib/store/local/file.h"

namespace shardtool::api {
namespace {

using nlohmann::json;

using nlohmann::ordered_json;

/// Keys of a plan that are not compared.
constexpr std::array kBeside{"format_version", "tool", "command", "source", "warnings",
                             "apply",          "seal", "status",  "layers"};
/// Keys that the pictures of a difference do not need.
constexpr std::array kNotDrawn{"format_version", "tool", "apply", "seal", "layers"};
constexpr std::array kNotDrawnOfReshard{"tensors", "pairs", "memory"};

/// Returns the JSON text of a plan's file: all of it, or what stands inside a page.
std::string document_text(const std::string& path) {
  std::string text = store::read_text(path, kMaxPlanBytes);
  if (!text.starts_with("<!DOCTYPE html>")) return text;
  const size_t begin = text.find(kIslandBegin);
  const size_t end = text.find(kIslandEnd, begin);
  if (begin == std::string::npos || end == std::string::npos) return text;
  return text.substr(begin + kIslandBegin.size(), end - begin - kIslandBegin.size());
}

/// Keeps of a rule what a difference names: its tensors and the expression of each axis.
json compared_rule(const json& rule) {
  json compared{{"tensors", rule.at("tensors")}, {"bytes", rule.at("bytes")}};
  for (const json& axis : rule.at("example").at("axes"))
    compared["axes"].push_back(axis.at("expression"));
  return compared;
}

/// Turns the drawn rules into an object by their names.
void name_rules(json& document) {
  json rules = json::object();
  for (const json& rule : document.at("rules"))
    rules[rule.at("example").at("rule").get<std::string>()] = compared_rule(rule);
  document["rules"] = std::move(rules);
}

json compared_document(const std::string& text, const std::string& path) {
  json document = parse_strict_json(text, path, ErrorCode::kPlanInvalid, kMaxPlanDepth).value;
  if (!document.is_object() || !document.contains("command") || document["command"] != "plan") {
    throw Error(ErrorCode::kPlanInvalid, "the file is not a document of `shardtool plan`")
        .at({path, 0, 0, {}})
        .help("compare files of `plan -o FILE`, of `plan --json`, or of `plan --html FILE`");
  }
  for (const char* key : kBeside) document.erase(key);
  try {
    if (document.contains("rules")) name_rules(document);
    if (document.contains("reshard")) {
      for (const char* key : {"pairs", "node_size", "memory"}) document["reshard"].erase(key);
    }
  } catch (const json::exception& error) {
    throw Error(ErrorCode::kPlanInvalid,
                fmt::format("the plan is not as `shardtool plan` writes it: {}", error.what()))
        .at({path, 0, 0, {}})
        .help("write it again with this version of shardtool");
  }
  return document;
}

/// Returns a document in its own order without what no picture of a difference shows.
std::string drawn_document(const std::string& text) {
  auto document = ordered_json::parse(text);
  for (const char* key : kNotDrawn) document.erase(key);
  if (document.contains("reshard")) {
    for (const char* key : kNotDrawnOfReshard) document["reshard"].erase(key);
  }
  return document.dump();
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

PlanDiff diff_plans(const std::string& path_a, const std::string& path_b, bool draws) {
  const std::string text_a = document_text(path_a);
  const std::string text_b = document_text(path_b);
  json document_a = compared_document(text_a, path_a);
  json document_b = compared_document(text_b, path_b);
  if (!document_a.contains("rules") || !document_b.contains("rules")) {
    for (json* document : {&document_a, &document_b}) document->erase("rules");
  }
  Values a;
  Values b;
  flatten(document_a, "", a);
  flatten(document_b, "", b);
  PlanDiff diff;
  if (draws) diff.plans = {drawn_document(text_a), drawn_document(text_b)};
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
