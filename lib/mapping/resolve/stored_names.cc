#include "lib/mapping/resolve/stored_names.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/mapping/resolve/output_tensors.h"

namespace shardtool::mapping {
namespace {

/// Names of the tensors of a rule, by the texts of the wildcards of its name.
StoredOrigin origin_of(const StoreRule& rule, const std::vector<std::string>& texts, i64 stacked) {
  StoredOrigin origin{{}, !rule.stack.empty()};
  if (!origin.is_stack) {
    for (const Glob& part : rule.of) origin.names.push_back(part.fill(texts));
    return origin;
  }
  const auto position =
      static_cast<std::ptrdiff_t>(position_of_number(rule.of.front(), rule.stack));
  for (i64 index = 0; index < stacked; ++index) {
    std::vector<std::string> numbered = texts;
    numbered.insert(numbered.begin() + position, std::to_string(index));
    for (const Glob& part : rule.of) origin.names.push_back(part.fill(numbered));
  }
  return origin;
}

}  // namespace

KeptNames::KeptNames(const Mapping& mapping) {
  for (const Document& document : mapping.documents()) {
    if (!document.kept_names) continue;
    Entry& entry = entries_.emplace_back(Entry{&document, {}});
    for (const Glob& name : *document.kept_names) entry.names.emplace_back(name);
  }
}

const Document* KeptNames::refused_by(std::string_view name) const {
  const auto refuses = [name](const Entry& entry) {
    return std::ranges::none_of(
        entry.names, [name](const GlobMatcher& kept) { return kept.match(name).has_value(); });
  };
  const auto found = std::ranges::find_if(entries_, refuses);
  return found == entries_.end() ? nullptr : found->document;
}

StoredNames::StoredNames(const Mapping& mapping, const ModelConfig* config) : kept_(mapping) {
  for (const Document& document : mapping.documents()) {
    for (const StoreRule& rule : document.store) {
      if (holds_for(rule, config)) rules_.push_back({&rule, GlobMatcher(rule.name)});
    }
  }
}

std::vector<StoredOrigin> StoredNames::origins(const std::string& stored, i64 stacked) const {
  std::vector<StoredOrigin> origins;
  for (const Entry& entry : rules_) {
    const auto texts = entry.name.match(stored);
    if (!texts) continue;
    if (entry.rule->constant) return {};
    origins.push_back(origin_of(*entry.rule, *texts, stacked));
  }
  if (kept_.refused_by(stored) == nullptr) origins.push_back({{stored}, false});
  if (!origins.empty()) return origins;
  throw Error(ErrorCode::kNoRule, "the layout has no tensor of this name")
      .tensor(quote_for_message(stored))
      .help("check that the files are of this layout: `shardtool layouts`");
}

}  // namespace shardtool::mapping
