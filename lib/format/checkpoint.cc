#include "lib/format/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/shell.h"
#include "lib/format/missing_place.h"
#include "lib/format/reader.h"
#include "lib/format/subset.h"
#include "lib/format/typed_location.h"
#include "lib/store/local/output_claim.h"

namespace shardtool::format {
namespace {

namespace fs = std::filesystem;

constexpr i64 kMaxManifestBytes = 1'000'000'000;
constexpr const char* kConfigName = "config.json";

/// True if manifest.json belongs to shardtool, even when damaged, and not to another tool.
bool mentions_shardtool(const std::string& text) {
  return text.find("\"shardtool\"") != std::string::npos;
}

/// Another tool's manifest.json in a folder is a config or tokenizer file.
void add_other_files(Checkpoint& checkpoint, const Location& location) {
  for (const std::string& name : location.listing.others) {
    const bool may_be_ours = !location.file.empty() || location.manifest.has_value();
    if (name != kManifestName || !may_be_ours) checkpoint.other_files.push_back(name);
  }
  for (const std::string& name : location.listing.outside_links) {
    const bool has_target = store::exists(location.folder + "/" + name);
    checkpoint.warnings.push_back({has_target
                                       ? "a link that leaves the folder is not taken along"
                                       : "a link is not taken along, because its target is missing",
                                   name, Oddity::kOutsideLink});
  }
}

/// Throws kFileMissing for the hidden folder of a run that has not written its manifest: files have
/// their headers and sizes long before their bytes.
void require_finished(const std::string& folder) {
  if (store::is_remote(folder)) return;  // list_folder looks for the mark of a run
  const auto run = store::run_of_folder(folder);
  if (!run || manifest_text(folder)) return;
  throw Error(ErrorCode::kFileMissing,
              "the output is not finished: this is the hidden folder of its run")
      .at({folder, 0, 0, ""})
      .note("output", run->place.path())
      .help(fmt::format("run the command that writes it again; `shardtool resume --list {}` "
                        "shows how it goes on",
                        path_argument(run->place.path())));
}

/// Throws the error of opening a file that cannot be opened; of a path that does not exist, with
/// advice.
void require_file(const std::string& path) {
  try {
    store::open_reader(path);
  } catch (Error& error) {
    const bool needs_advice = error.code() == ErrorCode::kFileMissing && error.help_lines().empty();
    const std::string advice = needs_advice ? advice_on_missing(path) : "";
    if (!advice.empty()) error.help(advice);
    throw;
  }
}

/// A folder, or a file that stands for its folder, is listed; its manifest is read if it decides.
Location look_at(const TypedLocation& typed) {
  const std::string& path = typed.place;
  Location location;
  location.format = typed.format;
  if (store::is_folder(path)) {
    location.folder = path;
    require_finished(path);
    location.listing = list_folder(path);
    if (has_name(location.listing.others, kManifestName)) location.manifest = manifest_text(path);
    return location;
  }
  location.file = fs::path(path).filename().string();
  const fs::path parent = fs::path(path).parent_path();
  location.folder = parent.empty() ? "." : parent.string();
  require_file(path);
  require_finished(location.folder);
  if (!is_entry_of_folder(location.file)) return location;
  location.listing = list_folder(location.folder);
  if (location.file == kManifestName) {
    location.manifest = store::read_source_text(path, kMaxManifestBytes);
  }
  return location;
}

/// True if a folder has config.json, and no file of weights, no index of them and no manifest.
bool has_config_alone(const FolderListing& listing) {
  const auto is_empty = [](const auto* names) { return names->empty(); };
  const std::array weights = {&listing.weights,       &listing.indices,  &listing.torch_weights,
                              &listing.torch_indices, &listing.dcp_data, &listing.foreign_weights,
                              &listing.rank_folders};
  return has_name(listing.others, kConfigName) && !has_name(listing.others, kManifestName) &&
         std::ranges::all_of(weights, is_empty);
}

}  // namespace

std::string text_of(const Warning& warning) {
  return warning.file.empty() ? warning.message : warning.file + ": " + warning.message;
}

std::string Checkpoint::folder() const {
  if (store::is_folder(path)) return path;
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::string Checkpoint::other_path(const std::string& name) const {
  return (other_folder.empty() ? folder() : other_folder) + "/" + name;
}

std::optional<std::string> manifest_text(const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  if (!store::is_file(path)) return std::nullopt;
  std::string text = store::read_source_text(path, kMaxManifestBytes);
  if (!mentions_shardtool(text)) return std::nullopt;
  return text;
}

Checkpoint open_checkpoint(const std::string& location) {
  return survey_checkpoint(location, throw_problem);
}

Checkpoint open_unpublished(const std::string& folder, std::string manifest,
                            const std::vector<std::string>& others) {
  Checkpoint checkpoint;
  checkpoint.path = folder;
  Location found;
  found.folder = folder;
  found.listing = sort_by_purpose(others);
  found.manifest = std::move(manifest);
  reader_of(found).open(checkpoint, found, throw_problem);
  return checkpoint;
}

std::optional<Checkpoint> config_without_weights(const std::string& location) {
  const TypedLocation typed = parse_location(location);
  if (!typed.format.empty() || !typed.prefix.empty()) return std::nullopt;
  Checkpoint checkpoint;
  const fs::path place(typed.place);
  if (store::is_folder(typed.place)) {
    if (!has_config_alone(list_folder(typed.place))) return std::nullopt;
    checkpoint.path = typed.place;
  } else {
    if (place.filename() != kConfigName || !store::is_file(typed.place)) return std::nullopt;
    checkpoint.path = place.has_parent_path() ? place.parent_path().string() : ".";
  }
  checkpoint.format = kConfigName;
  checkpoint.config_path = checkpoint.path + "/" + kConfigName;
  checkpoint.other_files = {kConfigName};
  return checkpoint;
}

Checkpoint survey_checkpoint(const std::string& location, const ProblemSink& report) {
  Checkpoint checkpoint;
  const TypedLocation typed = parse_location(location);
  checkpoint.path = typed.place;
  store::forget_listing(checkpoint.path);
  Location found = look_at(typed);
  if (is_entry_of_folder(found.file)) checkpoint.path = found.folder;
  add_other_files(checkpoint, found);
  const Reader& reader = reader_of(found);
  reader.open(checkpoint, found, report);
  warn_of_other_formats(checkpoint, found, reader);
  if (!typed.prefix.empty()) keep_below(checkpoint, typed.prefix);
  const std::string config = checkpoint.other_path(kConfigName);
  if (store::is_file(config)) checkpoint.config_path = config;
  return checkpoint;
}

}  // namespace shardtool::format
