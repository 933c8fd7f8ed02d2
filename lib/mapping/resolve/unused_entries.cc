#include "lib/mapping/resolve/unused_entries.h"

#include <fmt/format.h>

#include <set>

#include "lib/mapping/match/rule_matcher.h"

namespace shardtool::mapping {
namespace {

/// A name in an entry of a document.
struct Entry {
  std::string where;  ///< "drop" or "store"
  const Document* document = nullptr;
  const Glob* name = nullptr;
};

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

}  // namespace

std::vector<std::string> unused_entries(const Mapping& mapping,
                                        std::span<const TensorSpec> tensors) {
  std::vector<std::string> warnings;
  const std::vector<Entry> entries = entries_of(mapping);
  if (entries.empty()) return warnings;
  PatternSet names;
  for (const Entry& entry : entries) names.add(*entry.name);
  names.compile();
  std::set<int> used;
  for (const TensorSpec& tensor : tensors) {
    const std::vector<int>& matches = names.match(tensor.name);
    used.insert(matches.begin(), matches.end());
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (used.contains(static_cast<int>(i))) continue;
    const Entry& entry = entries[i];
    warnings.push_back(fmt::format("{}: no tensor has a name like '{}' in \"{}\"",
                                   entry.document->name, entry.name->text(), entry.where));
  }
  return warnings;
}

}  // namespace shardtool::mapping
