#include "lib/format/folder_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/hugging_face/hf_cache.h"
#include "lib/format/names.h"
#include "lib/format/torch/megatron_ranks.h"
#include "lib/store/local/tree.h"
#include "lib/store/reader.h"

namespace shardtool::format {
namespace {

namespace fs = std::filesystem;

/// Puts a name where it belongs; returns false for a name of no weights.
bool add_weights(FolderListing& listing, const std::string& name) {
  if (is_safetensors_name(name)) {
    listing.weights.push_back(name);
  } else if (is_index_name(name)) {
    listing.indices.push_back(name);
  } else if (is_torch_name(name)) {
    listing.torch_weights.push_back(name);
  } else if (is_torch_index_name(name)) {
    listing.torch_indices.push_back(name);
  } else if (is_dcp_data_name(name)) {
    listing.dcp_data.push_back(name);
  } else if (is_foreign_weights_name(name)) {
    listing.foreign_weights.push_back(name);
  } else {
    return false;
  }
  return true;
}

/// Keeps the names of Megatron's ranks.
void add_rank_folders(FolderListing& listing, const std::vector<std::string>& folders) {
  std::ranges::copy_if(
      folders, std::back_inserter(listing.rank_folders),
      [](const std::string& name) { return torch::megatron_rank(name).has_value(); });
  std::ranges::sort(listing.rank_folders);
}

/// The manifest may be there already: a run removes its mark last.
Error unfinished(const std::string& path) {
  return Error(ErrorCode::kFileMissing,
               fmt::format("the output is not finished: the mark of its run is still there, '{}'",
                           store::kUnfinishedName))
      .at({path, 0, 0, ""})
      .help("run the command that writes it again");
}

/// Throws kFileMissing unless a run that replaces an output has left it whole so far.
void require_still_there(const std::string& path) {
  constexpr i64 kMostBytes = 4096;
  const std::string mark =
      store::read_source_text(fmt::format("{}/{}", path, store::kUnfinishedName), kMostBytes);
  if (mark.find(store::kStillThere) == mark.npos) throw unfinished(path);
}

/// Lists a prefix of an object store.
FolderListing list_prefix(const std::string& path) {
  std::vector<std::string> names = store::names_below(path);
  if (std::erase(names, store::kUnfinishedName) > 0) require_still_there(path);
  FolderListing listing = sort_by_purpose(names);
  add_rank_folders(listing, store::folders_in(path));
  return listing;
}

/// True for a link without a target, and for one out of the folder unless these are fine.
bool is_bad_link(const fs::directory_entry& entry, const fs::path& folder, bool links_are_fine) {
  std::error_code error;
  if (!entry.is_symlink(error)) return false;
  const fs::path target = fs::canonical(entry.path(), error);
  return error || (!links_are_fine && target.parent_path() != folder);
}

}  // namespace

FolderListing sort_by_purpose(const std::vector<std::string>& names) {
  FolderListing listing;
  for (const std::string& name : names) {
    if (is_plain_file_name(name) && !add_weights(listing, name)) listing.others.push_back(name);
  }
  return listing;
}

FolderListing list_folder(const std::string& path) {
  if (store::is_remote(path)) return list_prefix(path);
  FolderListing listing;
  std::vector<std::string> folders;
  std::error_code error;
  const fs::path folder = fs::canonical(path, error);
  const bool links_are_fine = is_hf_snapshot(path);
  fs::directory_iterator at(path, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::error_code gone;
    const bool is_folder = at->is_directory(gone);
    if (is_folder) folders.push_back(name);
    if (!is_plain_file_name(name) || is_folder) continue;
    if (add_weights(listing, name)) continue;
    if (is_bad_link(*at, folder, links_are_fine)) {
      listing.outside_links.push_back(name);
    } else if (at->is_regular_file(gone)) {
      listing.others.push_back(name);
    }
  }
  if (error) {
    throw Error(ErrorCode::kUnreadable, "the folder cannot be listed: " + error.message())
        .at({path, 0, 0, ""});
  }
  add_rank_folders(listing, folders);
  for (auto* names :
       {&listing.weights, &listing.indices, &listing.torch_weights, &listing.torch_indices,
        &listing.dcp_data, &listing.foreign_weights, &listing.others, &listing.outside_links}) {
    std::sort(names->begin(), names->end());
  }
  return listing;
}

void require_inside(const std::string& folder, const std::string& name) {
  if (store::is_remote(folder) || is_hf_snapshot(folder)) return;
  std::error_code error;
  const fs::path inside = fs::canonical(folder, error);
  const fs::path path = fs::path(folder) / name;
  const fs::path target = error ? fs::path() : fs::canonical(path, error);
  if (error || blob_name(target.string())) return;
  if (store::is_within(target, inside)) return;
  throw Error(ErrorCode::kUnsupported, "a file of the checkpoint is a link out of its folder")
      .at({path.string(), 0, 0, ""})
      .note("found", quote_for_message(target.string()))
      .help("put the file itself, or a hard link to it, into the folder");
}

}  // namespace shardtool::format
