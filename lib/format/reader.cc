#include "lib/format/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lib/base/error.h"
#include "lib/format/names.h"

namespace shardtool::format {

bool has_name(const std::vector<std::string>& sorted_names, std::string_view name) {
  return std::binary_search(sorted_names.begin(), sorted_names.end(), name);
}

Warning unlisted_file(const std::string& name, std::string_view by) {
  return {fmt::format("not named by {} and ignored", by), name, Oddity::kUnlistedFile};
}

void warn_of_unlisted(Checkpoint& checkpoint, const std::vector<std::string>& names,
                      std::string_view by) {
  for (const std::string& name : names) {
    const auto is_it = [&name](const SourceFile& file) { return file.name == name; };
    if (std::any_of(checkpoint.files.begin(), checkpoint.files.end(), is_it)) continue;
    checkpoint.warnings.push_back(unlisted_file(name, by));
  }
}

std::vector<std::string> series_of(const std::vector<std::string>& names,
                                   std::string_view extension) {
  constexpr std::string_view kOf = "-of-";
  constexpr size_t kDigits = 5;
  const std::string& first = names.front();
  const size_t of = first.rfind(kOf);
  if (of == std::string::npos || of < kDigits + 1) return {};
  const std::string stem = first.substr(0, of - kDigits);
  if (!stem.ends_with('-')) return {};
  constexpr int kMost = 99999;  // five digits
  int count = 0;
  const char* const digits = first.data() + of + kOf.size();
  static_cast<void>(std::from_chars(digits, first.data() + first.size(), count));
  if (count > kMost) return {};
  std::vector<std::string> series;
  for (int i = 1; i <= count; ++i)
    series.push_back(fmt::format("{}{:05}-of-{:05}{}", stem, i, count, extension));
  const bool are_parts = std::ranges::includes(series, names);
  return are_parts ? series : std::vector<std::string>{};
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
