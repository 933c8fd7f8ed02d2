#include "lib/layouts/recognise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include <algorithm>
#include <functional>
#include <map>

#include "lib/layouts/engine_layout.h"
#include "lib/layouts/file_numbers.h"
#include "lib/mapping/document/glob.h"
#include "lib/mapping/mapping.h"

namespace shardtool::layouts {
namespace {

/// Globs of the names of tensors that a layout's files may have.
std::vector<mapping::Glob> stored_names(const EngineLayout& layout) {
  std::vector<mapping::Glob> names;
  const mapping::Mapping tables(layout.documents);
  for (const mapping::Document& document : tables.documents()) {
    for (const mapping::ReadRule& rule : document.read) names.push_back(rule.name);
    for (const mapping::StoreRule& rule : document.store) names.push_back(rule.name);
  }
  for (const std::string& glob : layout.left_out) names.emplace_back(glob);
  return names;
}

/// Globs of the names of tensors that no model has, of a layout that fuses tensors and keeps the
/// names of others.
std::vector<mapping::Glob> names_of_its_own(const EngineLayout& layout) {
  std::vector<mapping::Glob> names;
  const mapping::Mapping tables(layout.documents);
  for (const mapping::Document& document : tables.documents()) {
    for (const mapping::StoreRule& rule : document.store) {
      if (rule.constant || rule.of.size() > 1 || !rule.stack.empty()) names.push_back(rule.name);
    }
  }
  return names;
}

/// Names in even steps, enough to recognise a layout: they are many times matched with patterns.
std::vector<std::string> some_of(std::span<const std::string> names) {
  constexpr size_t kEnough = 500;
  std::vector<std::string> some;
  for (size_t n = 0; n < names.size(); n += names.size() / kEnough + 1) some.push_back(names[n]);
  return some;
}

/// Marks the names that a glob takes. Most globs begin with other words than all names, and are not
/// compiled.
void mark(const mapping::Glob& glob, std::span<const std::string> names, std::vector<bool>& known) {
  const auto tokens = glob.tokens();
  const bool has_begin =
      !tokens.empty() && tokens.front().kind == mapping::GlobToken::Kind::kLiteral;
  const std::string begin = has_begin ? tokens.front().text : "";
  std::function<bool(std::string_view)> takes;
  for (size_t n = 0; n < names.size(); ++n) {
    if (known[n] || !names[n].starts_with(begin)) continue;
    if (!takes) takes = mapping::glob_filter(glob.text());
    known[n] = takes(names[n]);
  }
}

/// Names of tensors that speak for a layout.
struct Evidence {
  bool fuses = false;  ///< only names that no model has are counted
  i64 known = 0;
};

Evidence evidence_of(const EngineLayout& layout, std::span<const std::string> tensors) {
  const bool is_fusing = fuses(layout);
  std::vector<bool> known(tensors.size(), false);
  for (const mapping::Glob& glob : is_fusing ? names_of_its_own(layout) : stored_names(layout))
    mark(glob, tensors, known);
  return {is_fusing, std::ranges::count(known, true)};
}

std::string without_ending(const std::string& name) {
  return name.substr(0, name.rfind('.'));
}

/// True if a layout names all of these files so, whatever their formats.
bool names_all(const EngineLayout& layout, std::span<const std::string> files) {
  return std::ranges::any_of(layout.files, [files](const FileNames& names) {
    const RE2 pattern(regex_of(without_ending(names.pattern)));
    return !files.empty() && std::ranges::all_of(files, [&pattern](const std::string& file) {
      return RE2::FullMatch(without_ending(file), pattern);
    });
  });
}

/// Newest layouts of each name that are read without a manifest.
template <typename Is>
std::vector<std::string> read_layouts(const Is& is) {
  std::vector<std::string> found;
  const std::vector<std::string>& read = read_layout_names();
  for (const EngineLayout& layout : engine_layouts()) {
    if (std::ranges::count(read, layout.name) == 0) continue;
    if (std::ranges::count(found, layout.name) == 0 && is(layout)) found.push_back(layout.name);
  }
  return found;
}

}  // namespace

std::vector<std::string> layouts_with_tensors(std::span<const std::string> names,
                                              std::span<const std::string> files) {
  const std::vector<std::string> tensors = some_of(names);
  std::map<const EngineLayout*, Evidence> evidence;
  i64 most = 0;
  for (const EngineLayout& layout : engine_layouts()) {
    if (layout.documents.empty()) continue;
    if (!layout.files.empty() && !names_all(layout, files)) continue;
    const Evidence& found = evidence[&layout] = evidence_of(layout, tensors);
    if (found.fuses) most = std::max(most, found.known);
  }
  return read_layouts([&](const EngineLayout& layout) {
    const auto found = evidence.find(&layout);
    if (found == evidence.end()) return false;
    const auto [fuses, known] = found->second;
    return fuses ? known > 0 && known == most : 2 * known > std::ssize(tensors);
  });
}

std::vector<std::string> layouts_of_ranks() {
  return read_layouts([](const EngineLayout& layout) { return !layout.ranks.cuts.empty(); });
}

std::vector<std::string> layouts_with_files(std::span<const std::string> files) {
  return read_layouts(
      [files](const EngineLayout& layout) { return names_all(layout, files) && !fuses(layout); });
}

std::vector<std::string> layouts_of_folder(std::span<const std::string> tensors,
                                           std::span<const std::string> files) {
  const std::vector<std::string> found = layouts_with_files(files);
  return found.empty() ? layouts_with_tensors(tensors, files) : found;
}

std::string advice_to_name(std::span<const std::string> layouts, std::string_view path) {
  if (layouts.empty()) return {};
  std::vector<std::string> locations;
  for (const std::string& layout : layouts) locations.push_back(fmt::format("{}:{}", layout, path));
  return fmt::format("the names are those of {}: give {}", fmt::join(layouts, " or "),
                     fmt::join(locations, " or "));
}

}  // namespace shardtool::layouts
