#include "lib/api/proof/config_difference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "lib/base/text.h"

namespace shardtool::api {
namespace {

using nlohmann::json;

bool is_left_out(std::string_view path) {
  return path.ends_with("dtype") || path == "architectures" ||
         path.find("quantization") != path.npos || path.find("compression_config") != path.npos;
}

/// Returns the value at a path; null for one that is absent or false.
json value_at(const mapping::ModelConfig& config, std::string_view path) {
  const json* value = config.find(path);
  return value == nullptr || *value == false ? json() : *value;
}

std::string text_of(const json& value) {
  constexpr size_t kMost = 60;
  return value.is_null() ? "nothing" : quote_for_message(value.dump(), kMost);
}

}  // namespace

std::optional<check::Finding> config_difference(const mapping::ModelConfig& shards,
                                                const mapping::ModelConfig& reference) {
  std::vector<std::string> found, expected, differences;
  std::vector<std::string> paths = shards.read_paths();
  // A stored head is read whatever this says, but not by every engine. Defaults differ.
  constexpr auto kTied = "tie_word_embeddings";
  if (shards.find(kTied) != nullptr && reference.find(kTied) != nullptr) paths.emplace_back(kTied);
  std::ranges::sort(paths);
  const auto again = std::ranges::unique(paths);
  paths.erase(again.begin(), again.end());
  for (const std::string& path : paths) {
    if (is_left_out(path)) continue;
    const json ours = value_at(shards, path), theirs = value_at(reference, path);
    if (ours == theirs) continue;
    found.push_back(fmt::format("{} {}", path, text_of(ours)));
    expected.push_back(fmt::format("{} {}", path, text_of(theirs)));
    differences.push_back(found.back() + " instead of " + text_of(theirs));
  }
  if (found.empty()) return std::nullopt;
  check::Finding finding;
  finding.rule = check::CheckRule::kMixedCheckpoints;
  finding.severity = check::Severity::kError;
  finding.message =
      fmt::format("config.json of the shards makes another model than the reference's: {}",
                  fmt::join(differences, ", "));
  finding.found = fmt::format("{}", fmt::join(found, ", "));
  finding.expected = fmt::format("{}", fmt::join(expected, ", "));
  return finding;
}

}  // namespace shardtool::api
