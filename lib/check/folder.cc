#include "lib/check/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/check/container.h"
#include "lib/format/folder_listing.h"
#include "lib/format/hugging_face/hf_cache.h"
#include "lib/format/names.h"
#include "lib/mapping/document/config.h"
#include "lib/store/reader.h"

namespace shardtool::check {
namespace {

using format::Checkpoint;

constexpr i64 kHubFileBytes = 500'000'000'000;
constexpr i64 kHubFolderFiles = 10'000;

bool is_portable(std::string_view name) {
  constexpr std::string_view kMarks = "._-";
  return std::all_of(name.begin(), name.end(), [&](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter || (c >= '0' && c <= '9') || kMarks.find(c) != std::string_view::npos;
  });
}

/// False for a single file, which has no folder of its own.
bool is_folder(const Checkpoint& checkpoint) {
  return store::is_folder(checkpoint.path);
}

std::string pickle_fix(std::string_view name, bool is_weights) {
  if (is_weights) return "write them as safetensors: `shardtool merge` of the folder does";
  if (name == "common.pt") {
    return "it is a part of Megatron's format, which loads it with the weights: take it only from "
           "where you trust";
  }
  return name.starts_with("pytorch_model")
             ? "delete it if `shardtool diff` finds the same tensors in the weights' own files"
             : "keep it elsewhere: the weights are in other files";
}

void add_pickle(const Checkpoint& checkpoint, const std::string& name, Findings& findings) {
  const bool is_weights =
      std::any_of(checkpoint.files.begin(), checkpoint.files.end(),
                  [&name](const format::SourceFile& file) { return file.name == name; });
  findings.add({.rule = CheckRule::kPickle,
                .message = is_weights ? "the weights are a pickle file"
                                      : "a pickle file is beside the weights",
                .file = path_in(checkpoint.folder(), name),
                .fix = pickle_fix(name, is_weights)});
}

/// True if config.json requests code from the checkpoint. ST04 reports an unreadable config.
bool asks_for_code(const Checkpoint& checkpoint) {
  if (checkpoint.config_path.empty()) return false;
  try {
    return mapping::load_config(checkpoint.config_path).find("auto_map") != nullptr;
  } catch (const Error&) {
    return false;
  }
}

/// Reports weights files that are links out of the folder, except in snapshots of the Hugging Face
/// cache, which consist of links.
void check_links(const Checkpoint& checkpoint, Findings& findings) {
  namespace fs = std::filesystem;
  const std::string folder = checkpoint.folder();
  if (store::is_remote(folder) || format::is_hf_snapshot(folder)) return;
  std::error_code error;
  const fs::path here = fs::canonical(folder, error);
  for (const auto& file : checkpoint.files) {
    const fs::path path = fs::path(folder) / file.name;
    if (!fs::is_symlink(path, error) || fs::path(file.path).parent_path() == here) continue;
    findings.add({.rule = CheckRule::kLinkOutside,
                  .message = "a weights file is a link out of the folder",
                  .file = path_in(folder, file.name),
                  .fix = "copy the file itself into the folder"});
  }
}

}  // namespace

void check_hub(const Checkpoint& checkpoint, Findings& findings) {
  const std::string folder = checkpoint.folder();
  for (const auto& file : checkpoint.files) {
    if (file.identity.size > kHubFileBytes) {
      findings.add({.rule = CheckRule::kFileTooLarge,
                    .message = fmt::format("the file has {} bytes", file.identity.size),
                    .file = path_in(folder, file.name),
                    .expected = fmt::format("at most {} bytes", kHubFileBytes),
                    .fix = "cut it with --max-file-size 50GB"});
    }
  }
  i64 count = std::ssize(checkpoint.files) + std::ssize(checkpoint.other_files);
  if (count > kHubFolderFiles) {
    findings.add({.rule = CheckRule::kTooManyFiles,
                  .message = fmt::format("the folder has {} files", count),
                  .file = folder,
                  .expected = fmt::format("at most {}", kHubFolderFiles),
                  .fix = "merge files with a larger --max-file-size, or use folders"});
  }
  const auto check_name = [&](const std::string& name) {
    if (is_portable(name)) return;
    findings.add({.rule = CheckRule::kFileName,
                  .message = fmt::format("the name '{}' is not portable", quote_for_message(name)),
                  .file = path_in(folder, name),
                  .expected = "letters, digits, dot, dash and underscore"});
  };
  for (const auto& file : checkpoint.files) check_name(file.name);
  if (is_folder(checkpoint)) {
    for (const std::string& name : checkpoint.other_files) check_name(name);
  }
}

void check_safety(const Checkpoint& checkpoint, Findings& findings) {
  if (!is_folder(checkpoint)) return;
  const std::string folder = checkpoint.folder();
  const format::FolderListing listing = format::list_folder(folder);
  for (const std::string& name : listing.torch_weights) add_pickle(checkpoint, name, findings);
  for (const std::string& name : listing.foreign_weights) {
    if (name.ends_with(".pkl")) add_pickle(checkpoint, name, findings);
  }
  check_links(checkpoint, findings);
  if (!asks_for_code(checkpoint)) return;
  findings.add({.rule = CheckRule::kRemoteCode,
                .message = "config.json names Python classes of its own (auto_map)",
                .file = path_in(folder, "config.json"),
                .fix = "read the Python files before --trust-remote-code"});
}

}  // namespace shardtool::check
