#include "lib/check/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::check {
namespace {

struct Change {
  std::string_view profile;
  CheckRule rule;
  Severity severity;
};

constexpr auto kChanges = std::to_array<Change>({
    {"hf", CheckRule::kFramework, Severity::kWarning},
    {"hf", CheckRule::kNoIndex, Severity::kError},
    {"vllm", CheckRule::kUneven, Severity::kError},
    {"vllm", CheckRule::kPartialOverlap, Severity::kError},
    {"vllm", CheckRule::kMisaligned, Severity::kWarning},
    {"vllm", CheckRule::kBlockSizes, Severity::kWarning},
    {"dcp", CheckRule::kFileName, Severity::kError},
    {"dcp", CheckRule::kFramework, Severity::kWarning},
    {"hub", CheckRule::kFileTooLarge, Severity::kError},
    {"hub", CheckRule::kTooManyFiles, Severity::kError},
    {"hub", CheckRule::kFileName, Severity::kWarning},
    {"hub", CheckRule::kFramework, Severity::kWarning},
    {"hub", CheckRule::kRemoteCode, Severity::kWarning},
    {"hub", CheckRule::kPickle, Severity::kError},
});

Severity one_step_up(Severity severity) {
  return severity == Severity::kError ? severity
                                      : static_cast<Severity>(static_cast<int>(severity) + 1);
}

}  // namespace

const std::vector<std::string>& profile_names() {
  static const std::vector<std::string> kNames{"hf", "vllm", "dcp", "hub", "strict"};
  return kNames;
}

Profile::Profile(const std::string& name) {
  for (const RuleInfo& row : rule_table()) severities_.push_back(row.severity);
  if (name.empty()) return;
  const auto& names = profile_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    throw Error(ErrorCode::kUsage, fmt::format("there is no profile '{}'", quote_for_message(name)))
        .help(fmt::format("known are: {}", fmt::join(names, ", ")));
  }
  for (const Change& change : kChanges) {
    if (change.profile == name) severities_[static_cast<size_t>(change.rule)] = change.severity;
  }
  if (name == "strict") {
    std::transform(severities_.begin(), severities_.end(), severities_.begin(), one_step_up);
  }
}

void Profile::ignore(const std::string& id) {
  std::string upper = id;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  constexpr size_t kFamilyLength = 4;
  bool any = false;
  for (const RuleInfo& row : rule_table()) {
    if (upper.size() < kFamilyLength || !row.id.starts_with(upper)) continue;
    severities_[static_cast<size_t>(row.rule)] = Severity::kOff;
    any = true;
  }
  if (any) return;
  throw Error(ErrorCode::kUsage, fmt::format("there is no rule '{}'", quote_for_message(id)))
      .help("`shardtool check --rules` lists them; ST04 stands for all that begin so");
}

}  // namespace shardtool::check
