#include "lib/mapping/resolve/unused_entries.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "lib/mapping/match/compiled_patterns.h"

namespace shardtool::mapping {
namespace {

/// A name in an entry of a document.
struct Entry {
  std::string where;  ///< "drop" or "store"
  const Document* document = nullptr;
  const Glob* name = nullptr;
};

/// Returns the warning for an entry whose names no tensor has.
std::string unused(const Document& document, std::string_view names, std::string_view where) {
  return fmt::format("{}: no tensor has a name like {} in \"{}\"", document.name, names, where);
}

std::vector<Entry> entries_of(const Mapping& mapping) {
  std::vector<Entry> entries;
  for (const Document& document : mapping.documents()) {
    if (document.may_lack_axes) continue;  // presets, layouts and recorded documents
    for (const DropRule& rule : document.drop) entries.push_back({"drop", &document, &rule.match});
    for (const StoreRule& rule : document.store) {
      for (const Glob& name : rule.of) entries.push_back({"store", &document, &name});
    }
  }
  return entries;
}

PatternSet entry_patterns(const std::vector<Entry>& entries) {
  std::vector<Pattern> patterns;
  for (const Entry& entry : entries) patterns.push_back(pattern_of(*entry.name));
  return PatternSet(std::move(patterns));
}

void warn_of_names(const Mapping& mapping, std::span<const TensorSpec> tensors,
                   std::vector<std::string>& warnings) {
  const std::vector<Entry> entries = entries_of(mapping);
  if (entries.empty()) return;
  NameMatcher names(mapping.patterns().entries.of([&] { return entry_patterns(entries); }));
  std::set<int> used;
  for (const TensorSpec& tensor : tensors) {
    const std::vector<int>& matches = names.match(tensor.name);
    used.insert(matches.begin(), matches.end());
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (used.contains(static_cast<int>(i))) continue;
    const Entry& entry = entries[i];
    warnings.push_back(
        unused(*entry.document, fmt::format("'{}'", entry.name->text()), entry.where));
  }
}

/// A checkpoint may have one tensor of a tied group alone.
void warn_of_tied(const Mapping& mapping, const TensorIndex& by_name,
                  std::vector<std::string>& warnings) {
  const auto is_there = [&](const std::string& name) { return by_name.contains(name); };
  for (const Document& document : mapping.documents()) {
    if (document.may_lack_axes) continue;
    for (const auto& group : document.tied) {
      if (std::any_of(group.begin(), group.end(), is_there)) continue;
      warnings.push_back(unused(document, fmt::format("'{}'", fmt::join(group, "' or '")), "tied"));
    }
  }
}

}  // namespace

std::vector<std::string> unused_entries(const Mapping& mapping, std::span<const TensorSpec> tensors,
                                        const TensorIndex& by_name) {
  std::vector<std::string> warnings;
  warn_of_names(mapping, tensors, warnings);
  warn_of_tied(mapping, by_name, warnings);
  return warnings;
}

}  // namespace shardtool::mapping
