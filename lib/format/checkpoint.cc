#include "lib/format/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/folder_listing.h"
#include "lib/format/hugging_face/hf_cache.h"
#include "lib/format/hugging_face/hf_index.h"
#include "lib/format/manifest/manifest_against_headers.h"
#include "lib/format/names.h"
#include "lib/format/read_headers.h"

namespace shardtool::format {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr i64 kMaxIndexBytes = 100'000'000;
constexpr i64 kMaxManifestBytes = 1'000'000'000;

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::binary_search(names.begin(), names.end(), name);
}

void add_side_files(Checkpoint& checkpoint, const FolderListing& listing) {
  for (const std::string& name : listing.others) {
    if (name != kManifestName) checkpoint.side_files.push_back(name);
  }
  for (const std::string& name : listing.outside_links) {
    checkpoint.warnings.push_back(
        {"a link that leaves the folder is not taken along", name, Oddity::kOutsideLink});
  }
}

void warn_of_unlisted(Checkpoint& checkpoint, const FolderListing& listing, std::string_view by) {
  for (const std::string& name : listing.weights) {
    const auto is_it = [&name](const SourceFile& file) { return file.name == name; };
    if (std::any_of(checkpoint.files.begin(), checkpoint.files.end(), is_it)) continue;
    checkpoint.warnings.push_back(
        {fmt::format("not named by {} and ignored", by), name, Oddity::kUnlistedFile});
  }
}

/// True if manifest.json belongs to shardtool, even when damaged, and not to another tool.
bool mentions_shardtool(const std::string& text) {
  return text.find("\"shardtool\"") != std::string::npos;
}

/// Opens the files independently when the index or manifest that groups them is unreadable.
void open_loose_files(Checkpoint& checkpoint, const FolderListing& listing,
                      const ProblemSink& report) {
  read_headers(checkpoint, listing.weights, report);
}

void open_output(Checkpoint& checkpoint, std::string text, const FolderListing& listing,
                 const ProblemSink& report) {
  const std::string path = checkpoint.path + "/" + kManifestName;
  checkpoint.format = "shardtool output";
  try {
    checkpoint.manifest = parse_manifest(std::exchange(text, {}), path);
  } catch (const Error& error) {
    report({ProblemKind::kManifestInvalid, error, kManifestName});
    return open_loose_files(checkpoint, listing, report);
  }
  if (checkpoint.manifest->format != kSafetensors) {
    throw Error(ErrorCode::kUnsupported, "this output is in a format that is only written")
        .at({path, 0, 0, "/format"})
        .note("found", quote_for_message(checkpoint.manifest->format))
        .help("give the checkpoint that it was made from");
  }
  check_files(*checkpoint.manifest, checkpoint.path, report);
  std::vector<std::string> names;
  for (const FileRecord& file : checkpoint.manifest->files) names.push_back(file.name);
  read_headers(checkpoint, names, report);
  check_against_headers(checkpoint, report);
  warn_of_unlisted(checkpoint, listing, kManifestName);
}

/// Restricts the index to the files that could be read.
HfIndex without_unread_files(HfIndex index, const std::vector<SourceFile>& files) {
  const auto is_read = [&files](int file) {
    return files[static_cast<size_t>(file)].state == FileState::kRead;
  };
  const size_t before = index.weights.size();
  std::erase_if(index.weights, [&](const auto& weight) { return !is_read(weight.file); });
  if (index.weights.size() != before) index.total_size.reset();
  return index;
}

void open_index(Checkpoint& checkpoint, const std::string& name, const FolderListing& listing,
                const ProblemSink& report) {
  const std::string path = checkpoint.path + "/" + name;
  checkpoint.format = "safetensors index";
  HfIndex index;
  try {
    const auto name_file = [&](Problem problem) {
      problem.file = name;
      report(std::move(problem));
    };
    index = parse_index(store::read_text(path, kMaxIndexBytes), path, name_file);
  } catch (const Error& error) {
    report({ProblemKind::kIndexInvalid, error, name});
    return open_loose_files(checkpoint, listing, report);
  }
  read_headers(checkpoint, index.files, report);
  report_tensors_in_two_files(checkpoint, report);
  index = without_unread_files(std::move(index), checkpoint.files);
  for (Warning& warning : check_index(index, checkpoint.tensors, path, report)) {
    checkpoint.warnings.push_back(std::move(warning));
  }
  warn_of_unlisted(checkpoint, listing, name);
}

/// True if the files are model-00001-of-0000N to model-0000N-of-0000N of one stem.
bool are_all_parts(const std::vector<std::string>& names) {
  const std::string& first = names.front();
  const size_t dash = first.rfind("-00001-of-");
  if (dash == std::string::npos) return false;
  const std::string stem = first.substr(0, dash);
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] != fmt::format("{}-{:05}-of-{:05}.safetensors", stem, i + 1, names.size()))
      return false;
  }
  return true;
}

Error no_weights(const std::string& folder, const FolderListing& listing) {
  if (listing.foreign_weights.empty()) {
    return Error(ErrorCode::kFileMissing, "no .safetensors file in the folder")
        .at({folder, 0, 0, ""})
        .help("give the folder that holds the weights, or one file");
  }
  return Error(ErrorCode::kUnsupported, "the folder has weights in another format only")
      .at({folder, 0, 0, ""})
      .note("found", list_for_message(listing.foreign_weights))
      .help(
          "pickle files (.bin, .pt, .pth) can run code and are never opened: fetch the safetensors "
          "version, or convert with transformers' save_pretrained(..., safe_serialization=True)");
}

Error unclear_choice(const std::string& folder, const std::vector<std::string>& names,
                     const std::string& help) {
  return Error(ErrorCode::kUnsupported, "it is unclear which files make the checkpoint")
      .at({folder, 0, 0, ""})
      .note("found", list_for_message(names))
      .help(help);
}

void open_without_index(Checkpoint& checkpoint, const FolderListing& listing,
                        const ProblemSink& report) {
  if (listing.weights.empty()) throw no_weights(checkpoint.path, listing);
  checkpoint.format = "safetensors";
  if (listing.weights.size() > 1) {
    if (!are_all_parts(listing.weights)) {
      report({ProblemKind::kUnclearChoice,
              unclear_choice(
                  checkpoint.path, listing.weights,
                  "several files need model.safetensors.index.json beside them; name one file "
                  "to open it alone"),
              ""});
      checkpoint.format = "safetensors files";
      return open_loose_files(checkpoint, listing, report);
    }
    checkpoint.warnings.push_back(
        {"there is no index; the parts are complete by their names", "", Oddity::kNoIndex});
  }
  read_headers(checkpoint, listing.weights, report);
  report_tensors_in_two_files(checkpoint, report);
}

/// Opens a folder by its most specific sign: our manifest, an index, its only weights.
void open_folder(Checkpoint& checkpoint, const ProblemSink& report) {
  const FolderListing listing = list_folder(checkpoint.path);
  add_side_files(checkpoint, listing);
  if (has(listing.others, kManifestName)) {
    auto text = manifest_text(checkpoint.path);
    if (text) return open_output(checkpoint, *std::move(text), listing, report);
    checkpoint.side_files.emplace_back(kManifestName);
  }
  if (has(listing.indices, kIndexName))
    return open_index(checkpoint, std::string(kIndexName), listing, report);
  if (listing.indices.size() == 1)
    return open_index(checkpoint, listing.indices.front(), listing, report);
  if (listing.indices.size() > 1) {
    throw unclear_choice(checkpoint.path, listing.indices, "name the index that you mean");
  }
  open_without_index(checkpoint, listing, report);
}

void open_single_file(Checkpoint& checkpoint, const std::string& path, const ProblemSink& report) {
  checkpoint.format = "safetensors";
  store::open_read(path);
  read_headers(checkpoint, {fs::path(path).filename().string()}, report);
}

}  // namespace

std::string Checkpoint::folder() const {
  std::error_code error;
  if (fs::is_directory(path, error)) return path;
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::optional<std::string> manifest_text(const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  std::string text = store::read_text(path, kMaxManifestBytes);
  if (!mentions_shardtool(text)) return std::nullopt;
  return text;
}

Checkpoint open_checkpoint(const std::string& location) {
  return survey_checkpoint(location, throw_problem);
}

Checkpoint survey_checkpoint(const std::string& location, const ProblemSink& report) {
  Checkpoint checkpoint;
  checkpoint.path = is_hf_location(location) ? resolve_hf_location(location) : location;
  while (checkpoint.path.size() > 1 && checkpoint.path.back() == '/') checkpoint.path.pop_back();
  const fs::path path = checkpoint.path;
  const std::string name = path.filename().string();
  std::error_code error;
  if (fs::is_directory(path, error)) {
    open_folder(checkpoint, report);
  } else if (name == kManifestName || is_index_name(name)) {
    store::open_read(checkpoint.path);
    checkpoint.path = checkpoint.folder();
    const FolderListing listing = list_folder(checkpoint.path);
    add_side_files(checkpoint, listing);
    if (is_index_name(name)) {
      open_index(checkpoint, name, listing, report);
    } else {
      open_output(checkpoint, store::read_text(path.string(), kMaxManifestBytes), listing, report);
    }
  } else {
    open_single_file(checkpoint, checkpoint.path, report);
  }
  const std::string config = checkpoint.folder() + "/config.json";
  if (fs::is_regular_file(config, error)) checkpoint.config_path = config;
  return checkpoint;
}

}  // namespace shardtool::format
