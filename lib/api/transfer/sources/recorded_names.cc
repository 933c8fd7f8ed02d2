#include "lib/api/transfer/sources/recorded_names.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "lib/api/mapping/recorded_mapping.h"
#include "lib/base/text.h"
#include "lib/mapping/document/glob_matcher.h"

namespace shardtool::api {
namespace {

using format::TensorRecord;

/// The rules of all documents that store tensors of the checkpoint. Conditions of rules are left
/// out: config.json and the devices decide which of several rules a split took.
class StoreRules {
 public:
  explicit StoreRules(const mapping::Mapping& mapping) {
    for (const mapping::Document& document : mapping.documents()) {
      for (const mapping::StoreRule& rule : document.store) {
        if (rule.constant) continue;
        for (const mapping::Glob& part : rule.of) rules_.push_back({&rule, &part, {}});
      }
    }
    for (Entry& entry : rules_)
      entry.matcher = std::make_unique<const mapping::GlobMatcher>(*entry.part);
  }

  /// Returns true if a rule stores the tensor under this name.
  bool store(const std::string& tensor, const std::string& stored) {
    const auto found = std::ranges::find_if(
        rules_, [&](const Entry& entry) { return is_stored_by(entry, tensor, stored); });
    if (found == rules_.end()) return false;
    // Most tensors are of few kinds: the rules that were found last are tried first.
    std::rotate(rules_.begin(), found, found + 1);
    return true;
  }

 private:
  struct Entry {
    const mapping::StoreRule* rule = nullptr;
    const mapping::Glob* part = nullptr;  ///< one of rule->of
    std::unique_ptr<const mapping::GlobMatcher> matcher;
  };

  static bool is_stored_by(const Entry& entry, const std::string& tensor,
                           const std::string& stored) {
    auto texts = entry.matcher->match(tensor);
    if (!texts) return false;
    if (!entry.rule->stack.empty()) {
      const size_t number = mapping::position_of_number(*entry.part, entry.rule->stack);
      texts->erase(texts->begin() + static_cast<std::ptrdiff_t>(number));
    }
    return entry.rule->name.fill(*texts) == stored;
  }

  std::vector<Entry> rules_;
};

/// Returns the first name that is not the tensor's own and that no rule gives, or null.
const std::string* unruled_name(const TensorRecord& tensor, StoreRules& rules) {
  if (tensor.stored && !rules.store(tensor.name, *tensor.stored)) return tensor.stored.get();
  const std::string* checked = nullptr;
  for (const auto& stored : tensor.stored_on) {
    if (!stored || (checked != nullptr && *stored == *checked)) continue;
    if (!rules.store(tensor.name, *stored)) return stored.get();
    checked = stored.get();
  }
  return nullptr;
}

bool has_stored_name(const TensorRecord& tensor) {
  return tensor.stored || !tensor.stored_on.empty();
}

}  // namespace

std::optional<Error> misnamed_tensor(const format::Checkpoint& opened) {
  const format::Manifest& manifest = *opened.manifest;
  if (manifest.mapping.empty() || std::ranges::none_of(manifest.tensors, has_stored_name)) {
    return std::nullopt;
  }
  const std::string path = opened.path + "/" + format::kManifestName;
  const mapping::Mapping mapping = mapping_from_json(manifest.mapping, path);
  StoreRules rules(mapping);
  for (const TensorRecord& tensor : manifest.tensors) {
    const std::string* const stored = unruled_name(tensor, rules);
    if (stored == nullptr) continue;
    return Error(
               ErrorCode::kManifestInvalid,
               "the manifest's mapping does not store the tensor under the name that the manifest "
               "records")
        .at({path, 0, 0, "/tensors"})
        .tensor(quote_for_message(tensor.name))
        .note("stored", quote_for_message(*stored))
        .help("take the manifest.json that the split wrote, or split the checkpoint again");
  }
  return std::nullopt;
}

}  // namespace shardtool::api
