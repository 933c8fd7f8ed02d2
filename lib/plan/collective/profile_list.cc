#include "lib/plan/collective/profile_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/plan/collective/embedded_profiles.h"

namespace shardtool::plan {

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const EmbeddedProfile& profile : embedded_profiles()) names.emplace_back(profile.name);
  return names;
}

std::string_view profile_text(std::string_view name) {
  const auto all = embedded_profiles();
  const auto found = std::find_if(all.begin(), all.end(), [name](const EmbeddedProfile& profile) {
    return profile.name == name;
  });
  if (found != all.end()) return found->text;
  Error error(ErrorCode::kUsage,
              fmt::format("there is no hardware profile '{}'", quote_for_message(name)));
  const std::string hint = did_you_mean(name, profile_names());
  if (!hint.empty()) error.help(hint);
  std::vector<std::string> longer;
  for (const std::string& known : profile_names()) {
    if (known.starts_with(name)) longer.push_back(known);
  }
  if (hint.empty() && !longer.empty() && !name.empty())
    error.help(fmt::format("did you mean {}?", fmt::join(longer, " or ")));
  error.help("`shardtool plan profile list` prints their names");
  throw error;
}

HardwareProfile find_profile(std::string_view name) {
  return decode_profile(profile_text(name), fmt::format("profile:{}", name));
}

}  // namespace shardtool::plan
