#include "lib/store/local/output_claim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <compare>
#include <exception>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "lib/base/shell.h"
#include "lib/store/local/failure.h"
#include "lib/store/local/syscalls.h"
#include "lib/store/local/tree.h"
#include "lib/store/reader.h"

namespace shardtool::store {
namespace {

constexpr size_t kIdDigits = 32;
constexpr std::string_view kTag = ".shardtool-";  // OutputPlace::hidden
constexpr std::string_view kFolderSuffix = ".tmp";
constexpr std::string_view kReplacedSuffix = ".old";
constexpr std::string_view kJournalSuffix = ".journal";
constexpr std::string_view kRecordSuffix = ".share";

/// Refuses the working folder. A new folder would take its place and its path, but the shell would
/// stay in the old one, which is empty and has no path.
void refuse_working_folder(const OutputPlace& place) {
  if (place.found == OutputPlace::Found::kNothing) return;
  const auto working = identity_at(".");
  const auto found = identity_at(place.path());
  if (!working || !found || !working->is_of_same_file(*found)) return;
  throw Error(ErrorCode::kWriteFailed, "the output is the working folder, which cannot be replaced")
      .at({place.path(), 0, 0, {}})
      .help("write into a new folder inside it, such as './sharded', or start from another folder");
}

OutputPlace checked_place(const std::string& path, Existing existing) {
  OutputPlace place = look_at_output(path);
  refuse_working_folder(place);
  if (place.found == OutputPlace::Found::kContent && existing == Existing::kRefuse) {
    throw output_exists(place.path());
  }
  return place;
}

/// True if an overlay file system shows the folder from a lower layer, such as an image's: it
/// cannot rename such a folder. Tries a rename that must fail, onto a folder that is not empty: for
/// a folder of a lower layer overlayfs answers EXDEV before it looks at the target.
bool is_of_lower_layer(const OutputPlace& place) {
  constexpr long kOverlayMagic = 0x794c7630;  // linux/magic.h
  const Syscalls& call = syscalls();
  struct statfs system {};
  const bool is_overlay =
      call.statfs(place.parent.c_str(), &system) == 0 && system.f_type == kOverlayMagic;
  if (!is_overlay) return false;
  // The name is that of a run's folder, so that the next run deletes what a killed one left.
  const std::string full = hidden_folder(place, fmt::format("{:032x}", ::getpid()));
  if (call.mkdir(full.c_str(), 0700) != 0 && errno != EEXIST)
    throw write_failure("create the folder", full, errno);
  create_anew(full + "/file");
  const bool moved = call.rename(place.path().c_str(), full.c_str()) == 0;
  const int reason = errno;
  if (moved) call.rename(full.c_str(), place.path().c_str());
  if (!moved) remove_tree(full);
  return !moved && reason == EXDEV;
}

bool is_id(std::string_view text) {
  return text.size() == kIdDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

bool remove_file(const std::string& path) {
  return syscalls().unlinkat(AT_FDCWD, path.c_str(), 0) == 0 || errno == ENOENT;
}

std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// Hidden name of a run: that of its output, and its id.
struct HiddenName {
  std::string output;
  std::string id;

  auto operator<=>(const HiddenName&) const = default;
};

/// Reads ".NAME.shardtool-<id>.<more>" with the suffix of a folder, a journal or a record.
std::optional<HiddenName> parse_hidden(std::string_view name) {
  const size_t tag = name.rfind(kTag);
  const bool has_suffix = name.ends_with(kFolderSuffix) || name.ends_with(kReplacedSuffix) ||
                          name.ends_with(kJournalSuffix) || name.ends_with(kRecordSuffix);
  if (!name.starts_with('.') || tag == name.npos || tag < 2 || !has_suffix) return std::nullopt;
  const std::string_view rest = name.substr(tag + kTag.size());
  const std::string_view id = rest.substr(0, kIdDigits);
  if (!is_id(id) || rest.size() == kIdDigits || rest[kIdDigits] != '.') return std::nullopt;
  return HiddenName{std::string(name.substr(1, tag - 1)), std::string(id)};
}

/// Names in the output's parent folder that begin with the id of a run.
std::vector<std::string> hidden_names(const OutputPlace& place) {
  const std::string prefix = name_of(place.hidden("-"));
  std::vector<std::string> names = names_in(place.parent);
  std::erase_if(names, [&](const std::string& name) {
    const auto hidden = parse_hidden(name);
    return !hidden || fmt::format(".{}{}", hidden->output, kTag) != prefix;
  });
  return names;
}

/// Existing hidden files of a run, sorted.
std::vector<std::string> hidden_files(const OutputPlace& place, const std::string& id,
                                      std::string_view suffix) {
  const std::string prefix = name_of(place.hidden("-" + id));
  std::vector<std::string> paths;
  for (const std::string& name : hidden_names(place)) {
    if (name.starts_with(prefix) && name.ends_with(suffix)) {
      paths.push_back(place.parent + "/" + name);
    }
  }
  return paths;
}

}  // namespace

void require_deletable(const OutputPlace& place) {
  const int reason = refusal_to_change(place.path());
  if (reason == 0) return;
  throw write_failure("delete the files of the old output", place.path(), reason)
      .help("change the folder's permissions, or write to another one");
}

Error output_exists(const std::string& path) {
  const bool has_manifest = is_remote(path) || identity_at(path + "/manifest.json");
  return Error(ErrorCode::kOutputExists, "the output exists and is not empty")
      .at({path, 0, 0, {}})
      .help(has_manifest ? "choose another folder, or replace this one with --force"
                         : "choose another folder: --force replaces outputs of shardtool only, and "
                           "this is none");
}

std::string hidden_folder(const OutputPlace& place, const std::string& id) {
  return place.hidden(fmt::format("-{}{}", id, kFolderSuffix));
}

std::string hidden_replaced(const OutputPlace& place, const std::string& id) {
  return place.hidden(fmt::format("-{}{}", id, kReplacedSuffix));
}

std::string hidden_lock(const OutputPlace& place) {
  return place.hidden(".lock");
}

std::string hidden_journal(const OutputPlace& place, const std::string& id, int process) {
  return place.hidden(fmt::format("-{}.{}{}", id, process, kJournalSuffix));
}

std::string hidden_record(const OutputPlace& place, const std::string& id, int share, int of) {
  return place.hidden(fmt::format("-{}.{}-of-{}{}", id, share, of, kRecordSuffix));
}

std::vector<std::string> hidden_journals(const OutputPlace& place, const std::string& id) {
  return hidden_files(place, id, kJournalSuffix);
}

std::vector<std::string> hidden_records(const OutputPlace& place, const std::string& id) {
  return hidden_files(place, id, kRecordSuffix);
}

std::vector<std::string> hidden_ids(const OutputPlace& place) {
  const size_t before_id = name_of(place.hidden("-")).size();
  std::set<std::string> ids;
  for (const std::string& name : hidden_names(place)) {
    ids.insert(name.substr(before_id, kIdDigits));
  }
  return {ids.begin(), ids.end()};
}

std::vector<HiddenRun> hidden_runs(const std::string& folder) {
  std::set<HiddenName> found;
  for (const std::string& name : names_in(folder)) {
    if (auto hidden = parse_hidden(name)) found.insert(*std::move(hidden));
  }
  std::vector<HiddenRun> runs;
  for (const HiddenName& hidden : found) {
    runs.push_back({{.parent = folder, .name = hidden.output}, hidden.id});
  }
  return runs;
}

std::optional<HiddenRun> run_of_folder(const std::string& path) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(path, error);
  const std::string name = folder.filename().string();
  auto hidden = parse_hidden(name);
  if (error || !hidden || !name.ends_with(kFolderSuffix)) return std::nullopt;
  return HiddenRun{{.parent = folder.parent_path().string(), .name = std::move(hidden->output)},
                   std::move(hidden->id)};
}

OutputClaim::OutputClaim(const std::string& path, Existing existing, LockKind kind)
    : place_(checked_place(path, existing)), lock_(hidden_lock(place_), kind) {
  place_ = checked_place(path, existing);  // another run may have published meanwhile
}

void OutputClaim::require_replaceable() const {
  if (place_.found != OutputPlace::Found::kContent) return;
  require_deletable(place_);
  if (!is_of_lower_layer(place_)) return;
  throw Error(ErrorCode::kWriteFailed,
              "the output is in a lower layer of an overlay file system, which cannot replace it")
      .at({place_.path(), 0, 0, {}})
      .help(fmt::format("delete it first: rm -r {}", path_argument(place_.path())));
}

bool OutputClaim::discard_journals(const std::string& id) const noexcept {
  try {
    bool all = true;
    for (const std::string& journal : hidden_journals(place_, id)) {
      all = remove_file(journal) && all;
    }
    for (const std::string& record : hidden_records(place_, id)) {
      all = remove_file(record) && all;
    }
    return all;
  } catch (const std::exception&) {
    return false;
  }
}

bool OutputClaim::discard_replaced(const std::string& id) const noexcept {
  return remove_tree(hidden_replaced(place_, id)) || errno == ENOENT;
}

bool OutputClaim::discard(const std::string& id) const noexcept {
  // Delete the journals first, so that they never refer to deleted files.
  const bool journals = discard_journals(id);
  const bool folder = remove_tree(hidden_folder(place_, id)) || errno == ENOENT;
  return discard_replaced(id) && journals && folder;
}

}  // namespace shardtool::store
