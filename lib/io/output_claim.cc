#include "shardtool/io/output_claim.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "shardtool/io/syscalls.h"
#include "shardtool/io/tree.h"

namespace shardtool::io {
namespace {

constexpr size_t kIdDigits = 32;
constexpr std::string_view kFolderSuffix = ".tmp";
constexpr std::string_view kJournalSuffix = ".journal";

OutputPlace checked_place(const std::string& path, Existing existing) {
  OutputPlace place = look_at_output(path);
  if (place.found == OutputPlace::Found::kContent && existing == Existing::kRefuse) {
    throw output_exists(place.path());
  }
  return place;
}

bool is_id(std::string_view text) {
  return text.size() == kIdDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace

Error output_exists(const std::string& path) {
  return Error(ErrorCode::kOutputExists, "the output exists and is not empty")
      .at({path, 0, 0, {}})
      .help("choose another folder, or replace this one with --force");
}

OutputClaim::OutputClaim(const std::string& path, Existing existing)
    : place_(checked_place(path, existing)), lock_(place_.hidden(".lock")) {}

std::string OutputClaim::folder_of(const std::string& id) const {
  return place_.hidden("-" + id + std::string(kFolderSuffix));
}

std::string OutputClaim::journal_of(const std::string& id) const {
  return place_.hidden("-" + id + std::string(kJournalSuffix));
}

std::vector<std::string> OutputClaim::leftovers() const {
  std::string prefix = place_.hidden("-");
  prefix.erase(0, prefix.rfind('/') + 1);
  std::set<std::string> ids;
  for (const std::string& name : names_in(place_.parent)) {
    if (!name.starts_with(prefix)) continue;
    for (const std::string_view suffix : {kFolderSuffix, kJournalSuffix}) {
      if (!name.ends_with(suffix) || name.size() < prefix.size() + suffix.size()) continue;
      const std::string id =
          name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
      if (is_id(id)) ids.insert(id);
    }
  }
  return {ids.begin(), ids.end()};
}

bool OutputClaim::discard(const std::string& id) const {
  // The journal first: it never speaks of files that are gone.
  const auto is_gone = [](int result) { return result == 0 || errno == ENOENT; };
  const bool journal = is_gone(syscalls().unlinkat(AT_FDCWD, journal_of(id).c_str(), 0));
  const bool folder = remove_tree(folder_of(id)) || errno == ENOENT;
  return journal && folder;
}

}  // namespace shardtool::io
