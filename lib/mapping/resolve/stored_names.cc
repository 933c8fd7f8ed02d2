#include "lib/mapping/resolve/stored_names.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/mapping/resolve/output_tensors.h"

namespace shardtool::mapping {

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

std::optional<std::string> StoredNames::checkpoint_name(const std::string& stored) const {
  for (const Entry& entry : rules_) {
    const auto texts = entry.name.match(stored);
    if (!texts) continue;
    if (entry.rule->constant) return std::nullopt;
    const bool is_one = entry.rule->of.size() == 1 && entry.rule->stack.empty();
    if (is_one && entry.rule->join == 0) return entry.rule->of.front().fill(*texts);
    if (is_one) {
      throw Error(ErrorCode::kUnsupported, "the files have several axes of a tensor as one")
          .at(entry.rule->place)
          .tensor(quote_for_message(stored))
          .help("merge the output of `shardtool split`, which has a manifest");
    }
    throw Error(ErrorCode::kUnsupported,
                "a tensor holds several of the checkpoint's, and no manifest says where each lies")
        .at(entry.rule->place)
        .tensor(quote_for_message(stored))
        .help("merge the output of `shardtool split`, which has a manifest");
  }
  if (kept_.refused_by(stored) == nullptr) return stored;
  throw Error(ErrorCode::kNoRule, "the layout has no tensor of this name")
      .tensor(quote_for_message(stored))
      .help("check that the files are of this layout: `shardtool layouts`");
}

}  // namespace shardtool::mapping
