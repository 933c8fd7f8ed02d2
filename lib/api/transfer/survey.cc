#include "lib/api/transfer/survey.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "lib/api/mapping/mapping_choice.h"
#include "lib/api/transfer/sources/foreign_source.h"
#include "lib/api/transfer/sources/one_split.h"
#include "lib/base/error.h"
#include "lib/check/container.h"
#include "lib/check/folder.h"
#include "lib/check/manifest_beside.h"
#include "lib/format/typed_location.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

using check::Finding;
using check::Findings;
using format::Checkpoint;
using format::FileState;

/// Locations of one split found so far, and the unclear grouping of the first one, if any.
struct Group {
  std::vector<Checkpoint> parts;
  std::optional<Finding> unclear;
};

/// Opens one location and records all its problems as findings.
Group open(const std::string& location, check::ManifestsBeside& manifests, Findings& findings) {
  Checkpoint where;
  where.path = format::parse_location(location).place;
  const std::string folder = where.folder();
  check::ContainerProblems problems(folder, findings);
  Checkpoint opened =
      format::survey_checkpoint(location, [&](format::Problem problem) { problems.note(problem); });
  manifests.add_to(opened, problems, findings);
  problems.finish(opened);
  check::check_container(opened, findings);
  check::check_hub(opened, findings);
  check::check_safety(opened, findings);
  check::check_one_numbering(opened, findings);
  Group group{{}, problems.unclear()};
  group.parts.push_back(std::move(opened));
  return group;
}

/// Keeps the first of tensors with the same name; the duplicate was already reported.
void drop_second_names(Checkpoint& opened) {
  std::set<std::string_view> seen;
  std::vector<format::StoredTensor> kept;
  kept.reserve(opened.tensors.size());
  for (format::StoredTensor& tensor : opened.tensors) {
    if (!seen.contains(tensor.name)) {
      kept.push_back(std::move(tensor));
      seen.insert(kept.back().name);
    }
  }
  opened.tensors = std::move(kept);
}

bool is_folder(const Checkpoint& opened) {
  return store::is_folder(opened.path);
}

bool has_all_ranks(const Checkpoint& c) {
  return std::ssize(c.manifest->ranks) >= c.manifest->mesh.size();
}

/// True for two folders of which one is a part of a split, and the other one is of the same mesh,
/// or for sibling folders of ranks.
bool are_parts_of_one(const Checkpoint& a, const Checkpoint& b) {
  if (!a.manifest && !b.manifest && rank_of_folder(a) && rank_of_folder(b)) {
    namespace fs = std::filesystem;
    return fs::path(a.path).parent_path() == fs::path(b.path).parent_path();
  }
  return a.manifest && b.manifest && is_folder(a) && is_folder(b) &&
         !(has_all_ranks(a) && has_all_ranks(b)) && a.manifest->mesh == b.manifest->mesh;
}

/// Lists the files of all parts.
Surveyed files_of(const std::vector<Checkpoint>& parts) {
  Surveyed surveyed;
  for (const Checkpoint& part : parts) {
    for (const auto& file : part.files) {
      surveyed.files.push_back({file.path, file.identity});
      surveyed.shown_files.push_back(check::path_in(part.folder(), file.name));
      surveyed.sizes.push_back(file.state == FileState::kMissing ? 0 : file.identity.size);
    }
  }
  return surveyed;
}

Surveyed joined(std::vector<Checkpoint> parts) {
  Surveyed surveyed = files_of(parts);
  if (!parts.front().manifest) {
    surveyed.foreign = as_foreign_shards(parts);
    if (surveyed.foreign) parts.resize(1);  // the others have the same names
    if (parts.front().chunked.empty()) drop_second_names(parts.front());
  }
  surveyed.logical = join_parts(std::move(parts));
  return surveyed;
}

/// Takes the parts that fit the ones before them, those with all ranks first. The others are
/// reported as different splits.
std::vector<Checkpoint> parts_of_first(std::vector<Checkpoint> parts, Findings& findings) {
  std::ranges::stable_partition(parts, has_all_ranks);
  std::vector<Checkpoint> fitting;
  for (Checkpoint& part : parts) {
    fitting.push_back(std::move(part));
    if (fitting.size() == 1) continue;
    try {
      check_one_split(fitting);
    } catch (const Error& error) {
      findings.add(check::finding_of(check::CheckRule::kMixedCheckpoints, error));
      fitting.pop_back();
    }
  }
  return fitting;
}

/// Joins the parts. Parts that cannot be joined are reported as different splits.
Surveyed joined_if_one(std::vector<Checkpoint> parts, Findings& findings) {
  if (parts.size() > 1 && parts.front().manifest) {
    parts = parts_of_first(std::move(parts), findings);
  }
  if (parts.size() == 1) return joined(std::move(parts));
  try {
    return joined(parts);
  } catch (const Error& error) {
    findings.add(check::finding_of(check::CheckRule::kMixedCheckpoints, error));
    parts.resize(1);
    return joined(std::move(parts));
  }
}

}  // namespace

std::vector<Surveyed> survey(const std::vector<std::string>& locations, Findings& findings,
                             i64& unreadable) {
  std::vector<Group> groups;
  check::ManifestsBeside manifests;
  const std::vector<std::string> all_locations = with_rank_folders(locations);
  for (const std::string& location : all_locations) {
    std::optional<Group> found;
    try {
      found = open(location, manifests, findings);
    } catch (const Error& error) {
      if (all_locations.size() == 1 || !is_input_error(error)) throw;
      const std::string file = error.place() ? error.place()->file : location;
      findings.add(check::finding_of(check::CheckRule::kFileUnreadable, error, file));
      ++unreadable;
      continue;
    }
    Group& opened = *found;
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return are_parts_of_one(group.parts.front(), opened.parts.front());
    });
    if (same != groups.end()) {
      same->parts.push_back(std::move(opened.parts.front()));
    } else {
      groups.push_back(std::move(opened));
    }
  }
  std::vector<Surveyed> all;
  for (Group& group : groups) {
    all.push_back(joined_if_one(std::move(group.parts), findings));
    all.back().unclear = std::move(group.unclear);
  }
  return all;
}

Surveyed survey_of(LogicalCheckpoint opened) {
  Surveyed surveyed = files_of(opened.parts);
  surveyed.logical = std::move(opened);
  return surveyed;
}

}  // namespace shardtool::api
