#include "lib/format/reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/format/names.h"

namespace shardtool::format {

bool has_name(const std::vector<std::string>& sorted_names, std::string_view name) {
  return std::binary_search(sorted_names.begin(), sorted_names.end(), name);
}

void warn_of_unlisted(Checkpoint& checkpoint, const std::vector<std::string>& names,
                      std::string_view by) {
  for (const std::string& name : names) {
    const auto is_it = [&name](const SourceFile& file) { return file.name == name; };
    if (std::any_of(checkpoint.files.begin(), checkpoint.files.end(), is_it)) continue;
    checkpoint.warnings.push_back(
        {fmt::format("not named by {} and ignored", by), name, Oddity::kUnlistedFile});
  }
}

bool are_all_parts(const std::vector<std::string>& names, std::string_view extension) {
  const std::string& first = names.front();
  const size_t dash = first.rfind("-00001-of-");
  if (dash == std::string::npos) return false;
  const std::string stem = first.substr(0, dash);
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] != fmt::format("{}-{:05}-of-{:05}{}", stem, i + 1, names.size(), extension))
      return false;
  }
  return true;
}

void warn_of_no_index(Checkpoint& checkpoint) {
  checkpoint.warnings.push_back(
      {"there is no index; the files are complete by their names", "", Oddity::kNoIndex});
}

Error unclear_choice(const std::string& folder, const std::vector<std::string>& names,
                     const std::string& help) {
  return Error(ErrorCode::kUnsupported, "it is unclear which files make the checkpoint")
      .at({folder, 0, 0, ""})
      .note("found", list_for_message(names))
      .help(help);
}

}  // namespace shardtool::format
