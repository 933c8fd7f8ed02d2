#include "lib/checkpoint/manifest_against_headers.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/checkpoint/hf_cache.h"

namespace shardtool::checkpoint {
namespace {

namespace fs = std::filesystem;

std::string describe(Dtype dtype, const Shape& shape, i64 offset, i64 bytes) {
  return fmt::format("{} {}, {} bytes at {}", to_string(dtype), quote_for_message(to_string(shape)),
                     bytes, offset);
}

/// Index of the stored tensors of all files by file and name.
class StoredTensors {
 public:
  explicit StoredTensors(const std::vector<StoredTensor>& tensors) {
    sorted_.reserve(tensors.size());
    for (const StoredTensor& tensor : tensors) sorted_.push_back(&tensor);
    std::sort(sorted_.begin(), sorted_.end(),
              [](const auto* a, const auto* b) { return key(*a) < key(*b); });
  }

  const StoredTensor* find(int file, const std::string& name) const {
    const std::pair<int, const std::string&> wanted(file, name);
    const auto at =
        std::lower_bound(sorted_.begin(), sorted_.end(), wanted,
                         [](const auto* tensor, const auto& k) { return key(*tensor) < k; });
    return at != sorted_.end() && key(**at) == wanted ? *at : nullptr;
  }

 private:
  static std::pair<int, const std::string&> key(const StoredTensor& tensor) {
    return {tensor.file, tensor.name};
  }
  std::vector<const StoredTensor*> sorted_;
};

class Comparison {
 public:
  Comparison(const Checkpoint& checkpoint, const ProblemSink& report)
      : checkpoint_(checkpoint),
        manifest_(*checkpoint.manifest),
        stored_(checkpoint.tensors),
        report_(report) {}

  void check() const {
    for (size_t i = 0; i < manifest_.files.size(); ++i) {
      check_header(manifest_.files[i], checkpoint_.files[i]);
    }
    size_t recorded = 0;
    for (const TensorRecord& tensor : manifest_.tensors) {
      for (size_t s = 0; s < tensor.shards.size(); ++s) recorded += check_shard(tensor, s);
    }
    if (recorded != checkpoint_.tensors.size()) report_unrecorded();
  }

 private:
  Error differs(ErrorCode code, const std::string& message, const std::string& file) const {
    return Error(code, message).at({checkpoint_.folder() + "/" + file, 0, 0, ""});
  }

  void check_header(const FileRecord& record, const SourceFile& file) const {
    if (file.state != FileState::kRead || record.header_xxh3 == file.header_xxh3) return;
    report_(
        {ProblemKind::kHeaderChanged,
         differs(ErrorCode::kDataMismatch, "the header is not the one that was written", file.name)
             .note("found", "XXH3-128 " + file.header_xxh3)
             .note("expected", "XXH3-128 " + record.header_xxh3),
         file.name});
  }

  /// Number of tensors that match the record: 0 if its file lacks the tensor.
  size_t check_shard(const TensorRecord& tensor, size_t s) const {
    const ShardRecord& shard = tensor.shards[s];
    const SourceFile& source = checkpoint_.files[static_cast<size_t>(shard.file)];
    if (source.state != FileState::kRead) return 0;
    const std::string& file = source.name;
    const StoredTensor* found = stored_.find(shard.file, tensor.name);
    if (found == nullptr) {
      report_({ProblemKind::kShardMissing,
               differs(ErrorCode::kManifestInvalid,
                       "a file lacks a tensor that the manifest records", file)
                   .tensor(quote_for_message(tensor.name))
                   .note("expected", fmt::format("the shard of rank {}", shard.rank)),
               file});
      return 0;
    }
    const Shape shape = tensor.holders->local_shape(static_cast<int>(s));
    if (std::tie(found->dtype, found->shape, found->offset, found->bytes) ==
        std::tie(tensor.dtype, shape, shard.offset, shard.bytes)) {
      return 1;
    }
    report_({ProblemKind::kShardDiffers,
             differs(ErrorCode::kManifestInvalid, "a shard is not what the manifest records", file)
                 .tensor(quote_for_message(tensor.name))
                 .note("found", describe(found->dtype, found->shape, found->offset, found->bytes))
                 .note("expected", describe(tensor.dtype, shape, shard.offset, shard.bytes)),
             file});
    return 1;
  }

  /// Reports extra tensors. Every record has its own tensor (N3, N4), so only the files can have
  /// more.
  void report_unrecorded() const {
    std::vector<std::pair<int, std::string>> recorded;
    for (const TensorRecord& tensor : manifest_.tensors) {
      for (const ShardRecord& shard : tensor.shards) recorded.emplace_back(shard.file, tensor.name);
    }
    std::sort(recorded.begin(), recorded.end());
    for (const StoredTensor& tensor : checkpoint_.tensors) {
      if (std::binary_search(recorded.begin(), recorded.end(), std::pair(tensor.file, tensor.name)))
        continue;
      const std::string& file = checkpoint_.files[static_cast<size_t>(tensor.file)].name;
      report_({ProblemKind::kShardUnrecorded,
               differs(ErrorCode::kManifestInvalid,
                       "a file holds a tensor that the manifest does not record", file)
                   .tensor(quote_for_message(tensor.name)),
               file});
    }
  }

  const Checkpoint& checkpoint_;
  const Manifest& manifest_;
  StoredTensors stored_;
  const ProblemSink& report_;
};

}  // namespace

void check_files(const Manifest& manifest, const std::string& folder, const ProblemSink& report) {
  const bool links_are_fine = is_hf_snapshot(folder);
  for (const FileRecord& record : manifest.files) {
    const fs::path path = fs::path(folder) / record.name;
    std::error_code error;
    if (fs::is_symlink(path, error) && !links_are_fine) {
      report({ProblemKind::kManifestLink,
              Error(ErrorCode::kManifestInvalid, "a file of the output is a symbolic link")
                  .at({path.string(), 0, 0, ""})
                  .help("shardtool writes plain files: copy the file itself into the folder"),
              record.name});
    }
    const auto size = fs::file_size(path, error);
    if (error || size == static_cast<std::uintmax_t>(record.bytes)) continue;
    report({ProblemKind::kFileSize,
            Error(ErrorCode::kDataMismatch, "the file does not have the size that was written")
                .at({path.string(), 0, 0, ""})
                .note("found", fmt::format("{} bytes", size))
                .note("expected", fmt::format("{} bytes", record.bytes))
                .help("the file is truncated or was edited: copy it again"),
            record.name});
  }
}

void check_against_headers(const Checkpoint& checkpoint, const ProblemSink& report) {
  Comparison(checkpoint, report).check();
}

}  // namespace shardtool::checkpoint
