#include "lib/format/manifest/manifest_against_headers.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/name_map.h"
#include "lib/base/text.h"
#include "lib/format/hugging_face/hf_cache.h"
#include "lib/store/reader.h"

namespace shardtool::format {
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

  /// The tensor of this name, or, of several, the one at `offset` if there is one.
  const StoredTensor* find(int file, const std::string& name, i64 offset) const {
    const std::pair<int, const std::string&> wanted(file, name);
    const auto at =
        std::lower_bound(sorted_.begin(), sorted_.end(), wanted,
                         [](const auto* tensor, const auto& k) { return key(*tensor) < k; });
    for (auto one = at; one != sorted_.end() && key(**one) == wanted; ++one) {
      if ((*one)->offset == offset) return *one;
    }
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
        report_(report) {
    for (const ConstantRecord& constant : manifest_.constants) {
      constants_.emplace(constant.name, &constant);
    }
  }

  void check() {
    for (size_t i = 0; i < manifest_.files.size(); ++i) {
      check_header(manifest_.files[i], checkpoint_.files[i]);
    }
    size_t recorded = 0;
    for (const TensorRecord& tensor : manifest_.tensors) {
      for (size_t s = 0; s < tensor.shards.size(); ++s) recorded += check_shard(tensor, s);
    }
    report_shifted();
    recorded += check_parts() + check_constants();
    if (recorded != checkpoint_.tensors.size()) report_unrecorded();
  }

 private:
  /// Shard that is a part of a tensor of a file, [begin, end) in its bytes.
  struct Part {
    const StoredTensor* of = nullptr;
    i64 begin = 0;
    i64 end = 0;
    std::string_view tensor;
  };

  Error differs(ErrorCode code, const std::string& message, const std::string& file) const {
    return Error(code, message).at({checkpoint_.folder() + "/" + file, 0, 0, ""});
  }

  void check_header(const FileRecord& record, const SourceFile& file) const {
    if (file.state != FileState::kRead || record.header_xxh3 == file.header_xxh3) return;
    Error error =
        differs(ErrorCode::kDataMismatch, "the header is not the one that was written", file.name);
    error.note("found", "XXH3-128 " + file.header_xxh3)
        .note("expected", "XXH3-128 " + record.header_xxh3);
    const auto& records = checkpoint_.manifest->files;
    const auto other = std::ranges::find(records, file.header_xxh3, &FileRecord::header_xxh3);
    if (other != records.end()) {
      const SourceFile& there = checkpoint_.files[static_cast<size_t>(other - records.begin())];
      const bool is_copy = there.header_xxh3 == other->header_xxh3;
      error.help(fmt::format("it is the header of '{}': {}", quote_for_message(other->name),
                             is_copy ? "the file is a copy of it, write this one again"
                                     : "the files were exchanged, rename them back"));
    }
    report_({ProblemKind::kHeaderChanged, std::move(error), file.name});
  }

  /// Number of tensors that match the record: 0 if its file lacks the tensor, or if the shard is
  /// one of the parts of a tensor.
  size_t check_shard(const TensorRecord& tensor, size_t s) {
    const ShardRecord& shard = tensor.shards[s];
    const SourceFile& source = checkpoint_.files[static_cast<size_t>(shard.file)];
    if (source.state != FileState::kRead) return 0;
    const std::string& file = source.name;
    const StoredTensor* found = stored_.find(shard.file, tensor.stored_name(s), shard.offset);
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
    if (found->part) check_begin(tensor, s, *found->part);
    const auto& stored = tensor.stored_on.empty() ? tensor.stored : tensor.stored_on[s];
    if (stored && found->dtype == tensor.dtype) {
      parts_.push_back({found, shard.offset, shard.offset + shard.bytes, tensor.name});
      return 0;
    }
    if (std::tie(found->dtype, found->shape, found->offset, found->bytes) ==
        std::tie(tensor.dtype, shape, shard.offset, shard.bytes)) {
      return 1;
    }
    Problem problem{
        ProblemKind::kShardDiffers,
        differs(ErrorCode::kManifestInvalid, "a shard is not what the manifest records", file)
            .tensor(quote_for_message(tensor.name))
            .note("found", describe(found->dtype, found->shape, found->offset, found->bytes))
            .note("expected", describe(tensor.dtype, shape, shard.offset, shard.bytes)),
        file};
    const bool is_only_elsewhere =
        std::tie(found->dtype, found->shape) == std::tie(tensor.dtype, shape);
    if (is_only_elsewhere) {
      shifted_[shard.file].push_back(std::move(problem));
    } else {
      report_(std::move(problem));
      changed_.insert(shard.file);
    }
    return 1;
  }

  /// Reports shards at other offsets, unless another shard of their file has another size, which
  /// shifts all after it.
  void report_shifted() {
    for (auto& [file, problems] : shifted_) {
      if (changed_.contains(file)) continue;
      for (Problem& problem : problems) report_(std::move(problem));
    }
  }

  /// Checks that a chunk begins where the manifest says.
  void check_begin(const TensorRecord& tensor, size_t s, const PartOf& part) const {
    const index::Region region = tensor.holders->region(static_cast<int>(s));
    Shape begin;
    for (const index::AxisMap& axis : region) {
      begin.push_back(interval_begin(axis).value_or(-1));
    }
    if (begin == part.begin && (!part.whole || *part.whole == tensor.shape)) return;
    const std::string& file = checkpoint_.files[static_cast<size_t>(tensor.shards[s].file)].name;
    report_({ProblemKind::kShardDiffers,
             differs(ErrorCode::kManifestInvalid,
                     "a chunk is another region of its tensor than the manifest records", file)
                 .tensor(quote_for_message(tensor.name))
                 .note("found", fmt::format("begins at {}", to_string(part.begin)))
                 .note("expected", fmt::format("begins at {}", to_string(begin))),
             file});
  }

  /// Checks that the parts of every tensor follow each other and fill it. Returns the number of
  /// tensors.
  size_t check_parts() {
    std::sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) {
      return std::tie(a.of, a.begin, a.end) < std::tie(b.of, b.begin, b.end);
    });
    size_t tensors = 0;
    for (size_t begin = 0, end = 0; begin < parts_.size(); begin = end) {
      while (end < parts_.size() && parts_[end].of == parts_[begin].of) ++end;
      check_parts_of(*parts_[begin].of, std::span(parts_).subspan(begin, end - begin));
      ++tensors;
    }
    return tensors;
  }

  void check_parts_of(const StoredTensor& whole, std::span<const Part> parts) const {
    i64 filled = whole.offset;
    for (const Part& part : parts) {
      if (part.begin != filled) return report_part(whole, part);
      filled = part.end;
    }
    if (filled != whole.offset + whole.bytes) report_part(whole, parts.back());
  }

  void report_part(const StoredTensor& whole, const Part& part) const {
    const std::string& file = checkpoint_.files[static_cast<size_t>(whole.file)].name;
    report_(
        {ProblemKind::kShardDiffers,
         differs(ErrorCode::kManifestInvalid,
                 "the shards that the manifest records do not fill a tensor of the file", file)
             .tensor(quote_for_message(whole.name))
             .note("found", fmt::format("{} bytes at {} for '{}'", part.end - part.begin,
                                        part.begin, quote_for_message(part.tensor)))
             .note("expected", fmt::format("shards that follow each other in the {} bytes at {}",
                                           whole.bytes, whole.offset)),
         file});
  }

  /// Number of tensors of the files that are recorded constants.
  size_t check_constants() const {
    size_t found = 0;
    for (const StoredTensor& tensor : checkpoint_.tensors) found += is_constant(tensor) ? 1 : 0;
    return found;
  }

  bool is_constant(const StoredTensor& tensor) const {
    const auto found = constants_.find(tensor.name);
    return found != constants_.end() && found->second->dtype == tensor.dtype &&
           found->second->shape == tensor.shape;
  }

  /// Reports extra tensors. Every record has its own tensor (N3, N4), so only the files can have
  /// more.
  void report_unrecorded() const {
    std::vector<std::pair<int, std::string>> recorded;
    for (const TensorRecord& tensor : manifest_.tensors) {
      for (size_t s = 0; s < tensor.shards.size(); ++s) {
        recorded.emplace_back(tensor.shards[s].file, tensor.stored_name(s));
      }
    }
    std::sort(recorded.begin(), recorded.end());
    for (const StoredTensor& tensor : checkpoint_.tensors) {
      if (std::binary_search(recorded.begin(), recorded.end(),
                             std::pair(tensor.file, tensor.name)) ||
          is_constant(tensor)) {
        continue;
      }
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

  std::vector<Part> parts_;
  std::map<int, std::vector<Problem>> shifted_;  ///< by file
  std::set<int> changed_;                        ///< files with a shard of another type or shape
  NameViewMap<const ConstantRecord*> constants_;
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
    const std::optional<i64> size = store::size_of(path.string());
    if (!size || *size == record.bytes) continue;
    report({ProblemKind::kFileSize,
            Error(ErrorCode::kDataMismatch, "the file does not have the size that was written")
                .at({path.string(), 0, 0, ""})
                .note("found", fmt::format("{} bytes", *size))
                .note("expected", fmt::format("{} bytes", record.bytes))
                .help("the file is truncated or was edited: copy it again"),
            record.name});
  }
}

void check_against_headers(const Checkpoint& checkpoint, const ProblemSink& report) {
  Comparison(checkpoint, report).check();
}

}  // namespace shardtool::format
