#include "shardtool/checkpoint/read_headers.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "shardtool/base/error.h"
#include "shardtool/base/text.h"
#include "shardtool/checkpoint/hf_cache.h"
#include "shardtool/checkpoint/names.h"
#include "shardtool/checkpoint/safetensors/safetensors.h"

namespace shardtool::checkpoint {
namespace {

namespace fs = std::filesystem;

void require_all(const std::string& folder, const std::vector<std::string>& names) {
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    std::error_code error;
    if (!fs::exists(fs::path(folder) / name, error)) missing.push_back(name);
  }
  if (missing.empty()) return;
  Error error(ErrorCode::kFileMissing, fmt::format("{} of {} files of the checkpoint are missing",
                                                   missing.size(), names.size()));
  error.at({folder, 0, 0, ""}).note("missing", list_for_message(missing));
  throw error.help(is_hf_snapshot(folder) ? "the snapshot is incomplete: download it again"
                                          : "copy or download the whole folder again");
}

/// A link is resolved once, so that what is opened later is what was validated.
std::string resolved(const std::string& path) {
  std::error_code error;
  const fs::path canonical = fs::canonical(path, error);
  return error ? path : canonical.string();
}

void add_file(Checkpoint& checkpoint, const std::string& name) {
  SourceFile source;
  source.name = name;
  source.path = resolved(checkpoint.folder() + "/" + name);
  const io::File file = io::open_read(source.path);
  source.identity = io::identity(file);
  safetensors::Header header = safetensors::read_header(file);
  source.header_xxh3 = std::move(header.xxh3);
  checkpoint.header_bytes += header.data_begin;
  const auto number = static_cast<int>(checkpoint.files.size());
  for (safetensors::Entry& entry : header.entries) {
    checkpoint.tensors.push_back({std::move(entry.name), entry.dtype, std::move(entry.shape),
                                  number, header.data_begin + entry.begin,
                                  entry.end - entry.begin});
  }
  for (std::string& warning : header.warnings) {
    checkpoint.warnings.push_back({std::move(warning), name});
  }
  checkpoint.files.push_back(std::move(source));
}

void refuse_one_file_under_two_names(const Checkpoint& checkpoint) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, const SourceFile*> seen;
  for (const SourceFile& file : checkpoint.files) {
    const auto [first, is_new] =
        seen.emplace(std::pair(file.identity.device, file.identity.inode), &file);
    if (is_new) continue;
    throw Error(ErrorCode::kIndexInvalid, "two names are the same file, so its tensors stand twice")
        .at({checkpoint.folder(), 0, 0, ""})
        .note("found", fmt::format("'{}' and '{}'", first->second->name, file.name));
  }
}

}  // namespace

void read_headers(Checkpoint& checkpoint, const std::vector<std::string>& names) {
  require_all(checkpoint.folder(), names);
  for (const std::string& name : names) add_file(checkpoint, name);
  refuse_one_file_under_two_names(checkpoint);
}

void refuse_tensors_in_two_files(const Checkpoint& checkpoint) {
  if (checkpoint.files.size() < 2) return;
  std::vector<const std::string*> names;
  names.reserve(checkpoint.tensors.size());
  for (const StoredTensor& tensor : checkpoint.tensors) names.push_back(&tensor.name);
  const std::string* twice = find_duplicate(std::move(names));
  if (twice == nullptr) return;
  std::vector<std::string> holders;
  for (const StoredTensor& tensor : checkpoint.tensors) {
    if (tensor.name == *twice) {
      holders.push_back(checkpoint.files[static_cast<size_t>(tensor.file)].name);
    }
  }
  throw Error(ErrorCode::kIndexInvalid, "a tensor is in more than one file")
      .at({checkpoint.folder(), 0, 0, ""})
      .tensor(quote_for_message(*twice))
      .note("found", list_for_message(holders))
      .note("expected", "each tensor in one file");
}

}  // namespace shardtool::checkpoint
