#include "lib/mapping/resolve/stored_names.h"

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/mapping/resolve/output_tensors.h"

namespace shardtool::mapping {

StoredNames::StoredNames(const Mapping& mapping, const ModelConfig* config) {
  for (const Document& document : mapping.documents()) {
    requires_rule_ = requires_rule_ || document.requires_store_rule;
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
  if (!requires_rule_) return stored;
  throw Error(ErrorCode::kNoRule, "the layout has no tensor of this name")
      .tensor(quote_for_message(stored))
      .help("check that the files are of this layout: `shardtool layouts`");
}

}  // namespace shardtool::mapping
