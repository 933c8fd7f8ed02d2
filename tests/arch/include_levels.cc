#include "tests/arch/include_levels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace shardtool::arch {
namespace {

struct Module {
  std::string_view name;
  int level;
};

/// Checkpoint formats use hashes and copies, so their level is half a step above the kernels.
constexpr auto kModules = std::to_array<Module>({
    {"base", 0},     {"family", 10},  {"store", 10},    {"index", 10},  {"mesh", 10},
    {"comm", 20},    {"layout", 20},  {"kernels", 20},  {"format", 25}, {"plan", 25},
    {"mapping", 30}, {"layouts", 33}, {"ops", 35},      {"exec", 40},   {"model", 40},
    {"check", 45},   {"engine", 45},  {"tutorial", 47}, {"api", 50},    {"cli", 60},
    {"python", 70},
});

const Module* find_module(std::string_view name) {
  const auto* found = std::find_if(kModules.begin(), kModules.end(),
                                   [&](const Module& module) { return module.name == name; });
  return found == kModules.end() ? nullptr : found;
}

std::string_view first_folder(std::string_view path) {
  return path.substr(0, path.find('/'));
}

std::string_view module_of_file(std::string_view path) {
  constexpr std::string_view kLib = "lib/";
  return first_folder(path.starts_with(kLib) ? path.substr(kLib.size()) : path);
}

/// Text between the quotes of `#include "..."`.
std::optional<std::string_view> quoted_include(std::string_view line) {
  constexpr std::string_view kInclude = "#include \"";
  if (!line.starts_with(kInclude)) return std::nullopt;
  line.remove_prefix(kInclude.size());
  return line.substr(0, line.find('"'));
}

/// Reason why this include is forbidden, or an empty string.
std::string objection(const Module& from, std::string_view included) {
  const std::string_view folder = first_folder(included);
  if (folder != "lib" && folder != "kernels" && folder != "cli") {
    return fmt::format("\"{}\" is not a path of this repository", included);
  }
  const std::string_view name = module_of_file(included);
  const Module* to = find_module(name);
  if (to == nullptr) return fmt::format("'{}' has no level in tests/arch/include_levels.cc", name);
  if (to->name == from.name || to->level < from.level) return "";
  return fmt::format("{} may not include {}: it is not on a lower level", from.name, to->name);
}

}  // namespace

Findings upward_includes(const Source& source) {
  const Module* from = find_module(module_of_file(source.path));
  if (from == nullptr) return {at_line(source, 1, "its folder has no level")};
  Findings findings;
  size_t number = 0;
  for (const std::string_view line : lines_of(source.text)) {
    ++number;
    const auto included = quoted_include(line);
    if (!included) continue;
    const std::string problem = objection(*from, *included);
    if (!problem.empty()) findings.push_back(at_line(source, number, problem));
  }
  return findings;
}

}  // namespace shardtool::arch
