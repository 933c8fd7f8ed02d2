#include "lib/format/read_headers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/json_reader.h"
#include "lib/base/name_map.h"
#include "lib/base/text.h"
#include "lib/format/folder_listing.h"
#include "lib/format/hugging_face/hf_cache.h"
#include "lib/format/names.h"
#include "lib/format/safetensors/safetensors.h"

namespace shardtool::format {
namespace {

/// Returns the advice on missing files of a checkpoint. If all are missing, while the folder has
/// others of their kind, an index names the wrong files.
std::string advice_on_missing(const std::string& folder, const std::vector<std::string>& missing,
                              bool are_all) {
  if (is_hf_snapshot(folder)) return "the snapshot is incomplete: download it again";
  const FolderListing listing = are_all ? list_folder(folder) : FolderListing();
  const bool is_torch = is_torch_name(missing.front());
  const std::vector<std::string>& others = is_torch ? listing.torch_weights : listing.weights;
  if (others.empty()) return "copy or download the whole folder again";
  return fmt::format(
      "the index names none of the weights that are there, such as {}: if these are all of the "
      "model, delete the index; else download the folder again",
      quote_for_message(others.front()));
}

void report_missing(const std::string& folder, const std::vector<std::string>& names,
                    const ProblemSink& report) {
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    if (!store::exists(folder + "/" + name)) missing.push_back(name);
  }
  if (missing.empty()) return;
  Error error(ErrorCode::kFileMissing, fmt::format("{} of {} files of the checkpoint are missing",
                                                   missing.size(), names.size()));
  error.at({folder, 0, 0, ""}).note("missing", list_for_message(missing));
  error.help(advice_on_missing(folder, missing, missing.size() == names.size()));
  report({ProblemKind::kFileMissing, std::move(error), ""});
}

std::string framework_of(const safetensors::Header& header) {
  for (const auto& [key, value] : header.metadata) {
    if (key == "format") return value;
  }
  return "";
}

const std::string* sharding_info(const safetensors::Header& header) {
  for (const auto& [key, value] : header.metadata) {
    if (key == "DCP_SHARDING_INFO") return &value;
  }
  return nullptr;
}

/// True for the shards of a rank that this program wrote: their manifest is part of them.
bool has_rank(const safetensors::Header& header) {
  return std::ranges::any_of(header.metadata,
                             [](const auto& entry) { return entry.first == "shardtool.rank"; });
}

/// Begins of the tensors of one file, by name.
class ShardingInfo {
 public:
  ShardingInfo(const std::string& text, const std::string& path) : path_(path) {
    JsonReader in(text, {path, ErrorCode::kHeaderJson}, kMaxInfoDepth);
    in.begin_object();
    for (std::string name; in.next_key(name);) {
      auto part = std::make_shared<PartOf>();
      in.object({{"saved_offsets", [&] { part->begin = numbers(in); }},
                 {"global_shape", [&] { part->whole = numbers(in); }, false}});
      parts_.insert_or_assign(name, std::move(part));
    }
    in.finish();
  }

  std::shared_ptr<const PartOf> of(const std::string& tensor, const Shape& shape) const {
    const auto found = parts_.find(tensor);
    if (found != parts_.end() && found->second->begin.size() == shape.size()) return found->second;
    throw Error(ErrorCode::kHeaderJson, "DCP_SHARDING_INFO does not place a tensor of its file")
        .at({path_, 0, 0, "/__metadata__/DCP_SHARDING_INFO"})
        .tensor(quote_for_message(tensor))
        .help("save the file again with the version of PyTorch that reads it");
  }

 private:
  static constexpr int kMaxInfoDepth = 8;

  static Shape numbers(JsonReader& in) {
    Shape shape;
    in.begin_array();
    while (in.next_element()) shape.push_back(in.integer());
    return shape;
  }

  const std::string& path_;
  NameMap<std::shared_ptr<const PartOf>> parts_;
};

/// Problem kind for a file that could not be read at all.
ProblemKind kind_of(const Error& error, const std::string& name) {
  if (is_torch_name(name) && error.code() != ErrorCode::kFileMissing &&
      error.code() != ErrorCode::kUnreadable) {
    return ProblemKind::kTorchFile;
  }
  switch (error.code()) {
    case ErrorCode::kFileMissing:
      return ProblemKind::kFileMissing;
    case ErrorCode::kUnsupported:
      return ProblemKind::kForeignFormat;
    case ErrorCode::kMalformed:
      return ProblemKind::kHeaderLength;
    case ErrorCode::kHeaderJson:
      return ProblemKind::kHeaderJson;
    case ErrorCode::kTensorInvalid:
      return ProblemKind::kTensorSize;
    default:
      return ProblemKind::kUnreadable;
  }
}

void add_file(Checkpoint& checkpoint, const std::string& name, ReadFile read,
              const ProblemSink& report) {
  SourceFile source;
  source.name = name;
  source.path = store::resolved(checkpoint.folder() + "/" + name);
  try {
    const store::Reader file = store::open_reader(source.path);
    source.identity = store::identity(file);
    read(checkpoint, source, file, report);
  } catch (const Error& error) {
    if (store::is_of_store(error)) throw;
    const ProblemKind kind = kind_of(error, name);
    source.state = kind == ProblemKind::kFileMissing ? FileState::kMissing : FileState::kBroken;
    report({kind, error, name});
  }
  checkpoint.files.push_back(std::move(source));
}

void report_one_file_under_two_names(const Checkpoint& checkpoint, const ProblemSink& report) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, const SourceFile*> seen;
  for (const SourceFile& file : checkpoint.files) {
    if (file.state != FileState::kRead || store::is_remote(file.path)) continue;
    const auto [first, is_new] =
        seen.emplace(std::pair(file.identity.device, file.identity.inode), &file);
    if (is_new) continue;
    report(
        {ProblemKind::kSameFile,
         Error(ErrorCode::kIndexInvalid, "two names are the same file, so its tensors stand twice")
             .at({checkpoint.folder(), 0, 0, ""})
             .note("found", fmt::format("'{}' and '{}'", first->second->name, file.name)),
         file.name});
  }
}

enum class Parts { kIgnored, kFromInfo };

void read_file(Checkpoint& checkpoint, SourceFile& source, const store::Reader& file,
               const ProblemSink& report, Parts wanted) {
  safetensors::Header header = safetensors::read_header(file, [&](Problem problem) {
    if (problem.kind == ProblemKind::kTruncated) source.state = FileState::kBroken;
    problem.file = source.name;
    report(std::move(problem));
  });
  source.header_xxh3 = std::move(header.xxh3);
  source.framework = framework_of(header);
  if (has_rank(header) && !checkpoint.manifest) checkpoint.format = kFilesOfRanks;
  checkpoint.header_bytes += header.data_begin;
  const auto number = static_cast<int>(checkpoint.files.size());
  const std::string* const info =
      wanted == Parts::kFromInfo && !has_rank(header) ? sharding_info(header) : nullptr;
  std::optional<ShardingInfo> parts;
  if (info != nullptr) parts.emplace(*info, source.path);
  const size_t tensors = checkpoint.tensors.size() + header.entries.size();
  // Many files must not each move the tensors of those before them.
  if (tensors > checkpoint.tensors.capacity())
    checkpoint.tensors.reserve(std::max(tensors, 2 * checkpoint.tensors.capacity()));
  for (safetensors::Entry& entry : header.entries) {
    auto part = parts ? parts->of(entry.name, entry.shape) : nullptr;
    checkpoint.tensors.push_back({std::move(entry.name), entry.dtype, std::move(entry.shape),
                                  number, header.data_begin + entry.begin, entry.end - entry.begin,
                                  std::move(part)});
  }
  for (std::string& warning : header.warnings) {
    checkpoint.warnings.push_back({std::move(warning), source.name, Oddity::kUnknownField});
  }
}

}  // namespace

void read_safetensors_file(Checkpoint& checkpoint, SourceFile& source, const store::Reader& file,
                           const ProblemSink& report) {
  read_file(checkpoint, source, file, report, Parts::kIgnored);
}

bool are_sharded(const std::string& folder, const std::vector<std::string>& names) {
  return std::ranges::all_of(names, [&](const std::string& name) {
    try {
      const store::Reader file = store::open_reader(store::resolved(folder + "/" + name));
      const auto header = safetensors::read_header(file, [](const Problem&) {});
      return sharding_info(header) != nullptr && !has_rank(header);
    } catch (const Error&) {
      return false;  // reported when the file is read
    }
  });
}

void read_sharded_headers(Checkpoint& checkpoint, const std::vector<std::string>& names,
                          const ProblemSink& report) {
  const auto read = [](Checkpoint& into, SourceFile& source, const store::Reader& file,
                       const ProblemSink& problems) {
    read_file(into, source, file, problems, Parts::kFromInfo);
  };
  read_files(checkpoint, names, read, report);
}

void read_files(Checkpoint& checkpoint, const std::vector<std::string>& names, ReadFile read,
                const ProblemSink& report) {
  report_missing(checkpoint.folder(), names, report);
  for (const std::string& name : names) add_file(checkpoint, name, read, report);
  report_one_file_under_two_names(checkpoint, report);
}

void read_headers(Checkpoint& checkpoint, const std::vector<std::string>& names,
                  const ProblemSink& report) {
  read_files(checkpoint, names, read_safetensors_file, report);
}

void report_tensors_in_two_files(const Checkpoint& checkpoint, const ProblemSink& report) {
  if (checkpoint.files.size() < 2) return;
  std::vector<const std::string*> names;
  names.reserve(checkpoint.tensors.size());
  for (const StoredTensor& tensor : checkpoint.tensors) names.push_back(&tensor.name);
  std::map<std::string_view, std::vector<std::string>> holders;
  for (const std::string* twice : find_duplicates(std::move(names))) holders[*twice];
  if (holders.empty()) return;
  for (const StoredTensor& tensor : checkpoint.tensors) {
    const auto found = holders.find(tensor.name);
    if (found == holders.end()) continue;
    found->second.push_back(checkpoint.files[static_cast<size_t>(tensor.file)].name);
  }
  for (const auto& [tensor, files] : holders) {
    report({ProblemKind::kTensorInTwoFiles,
            Error(ErrorCode::kIndexInvalid, "a tensor is in more than one file")
                .at({checkpoint.folder(), 0, 0, ""})
                .tensor(quote_for_message(tensor))
                .note("found", list_for_message(files))
                .note("expected", "each tensor in one file"),
            files.back()});
  }
}

}  // namespace shardtool::format
