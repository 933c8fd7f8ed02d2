#include "lib/api/transfer/sources/logical_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/api/transfer/config_text.h"
#include "lib/api/transfer/sources/one_split.h"
#include "lib/api/transfer/sources/recorded_names.h"
#include "lib/base/error.h"
#include "lib/base/name_map.h"
#include "lib/base/shell.h"
#include "lib/base/text.h"
#include "lib/format/manifest/manifest_rules.h"
#include "lib/format/read_headers.h"
#include "lib/format/typed_location.h"
#include "lib/index/holder_set_pool.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

using format::Checkpoint;
using format::ShardRecord;
using format::TensorRecord;

void add_whole(LogicalCheckpoint& into, std::vector<format::StoredTensor> stored,
               index::HolderSetPool& pool) {
  into.tensors.reserve(stored.size());
  for (format::StoredTensor& tensor : stored) {
    LogicalTensor& logical = into.tensors.emplace_back();
    logical.side.holders = pool.whole(tensor.shape);
    logical.side.slots.push_back({tensor.file, tensor.offset});
    logical.spec.name = std::move(tensor.name);
    logical.spec.dtype = tensor.dtype;
    logical.spec.shape = std::move(tensor.shape);
  }
}

void add_chunked(LogicalCheckpoint& into, format::Checkpoint& from) {
  into.tensors.reserve(from.chunked.size());
  for (format::ChunkedTensor& tensor : from.chunked) {
    LogicalTensor& logical = into.tensors.emplace_back();
    logical.spec = {std::move(tensor.name), tensor.dtype, std::move(tensor.shape)};
    logical.side.holders = std::move(tensor.holders);
    for (const size_t stored : tensor.stored) {
      logical.side.slots.push_back({from.tensors[stored].file, from.tensors[stored].offset});
    }
  }
  from.chunked = {};
}

Error inconsistent(const Checkpoint& part, const std::string& message) {
  return Error(ErrorCode::kManifestInvalid, message)
      .at({part.path + "/" + format::kManifestName, 0, 0, {}});
}

/// Adds the shards of a tensor from another part.
void add_part(LogicalTensor& into, const TensorRecord& record, int first_file, bool is_of_ranks) {
  if (!record.shifts.empty()) into.shifts.resize(into.ranks.size());
  for (const ShardRecord& shard : record.shards) {
    into.side.slots.push_back({first_file + shard.file, shard.offset});
    if (is_of_ranks) into.ranks.push_back(shard.rank);
  }
  into.shifts.insert(into.shifts.end(), record.shifts.begin(), record.shifts.end());
  if (!into.shifts.empty()) into.shifts.resize(into.ranks.size());
}

/// Joins a tensor's holders over all parts.
std::shared_ptr<const index::HolderSet> joined_holders(const SplitTensor& tensor,
                                                       index::HolderSetPool& pool) {
  if (tensor.records.size() == 1) return tensor.records.front()->holders;
  std::vector<index::Region> regions;
  for (const TensorRecord* record : tensor.records) {
    for (int h = 0; h < record->holders->size(); ++h) {
      regions.push_back(record->holders->region(h));
    }
  }
  return pool.of(tensor.records.front()->shape, regions);
}

void add_shards(LogicalCheckpoint& into, const std::vector<int>& first_file,
                index::HolderSetPool& pool) {
  std::vector<SplitTensor> tensors = split_tensors(into.parts);
  into.tensors.reserve(tensors.size());
  for (SplitTensor& tensor : tensors) {
    const TensorRecord& first = *tensor.records.front();
    LogicalTensor& logical = into.tensors.emplace_back();
    logical.spec = {first.name, first.dtype, first.shape};
    logical.side.holders = joined_holders(tensor, pool);
    for (size_t i = 0; i < tensor.records.size(); ++i) {
      const TensorRecord& record = *tensor.records[i];
      if (!logical.digest) logical.digest = record.digest;
      add_part(logical, record, first_file[tensor.parts[i]], into.is_sharded());
    }
    logical.records = std::move(tensor.records);
  }
}

void add_constants(LogicalCheckpoint& into, const std::vector<int>& first_file) {
  for (size_t p = 0; p < into.parts.size(); ++p) {
    const Checkpoint& part = into.parts[p];
    NameViewMap<const format::ConstantRecord*> records;
    for (const auto& record : part.manifest->constants) records.emplace(record.name, &record);
    for (const format::StoredTensor& stored : part.tensors) {
      const auto found = records.find(stored.name);
      if (found == records.end()) continue;
      into.constants.push_back({found->second, {first_file[p] + stored.file, stored.offset}});
    }
  }
}

std::string undigested_text(size_t tensors) {
  return fmt::format("{} {} no digest although all of {} was written",
                     plural(static_cast<i64>(tensors), "tensor"), tensors == 1 ? "has" : "have",
                     tensors == 1 ? "it" : "each");
}

/// Rejects a manifest with missing digests: the run that wrote it cannot have read all of the
/// tensor.
void require_digests(const Checkpoint& part) {
  if (!part.manifest) return;
  const auto found = format::without_digest(*part.manifest);
  if (found.empty()) return;
  throw inconsistent(part, "a tensor has no digest although all of it was written")
      .tensor(quote_for_message(found.front()->name))
      .note("found", undigested_text(found.size()))
      .note("expected", "a digest for every tensor that the manifest's shards cover")
      .help(fmt::format("it may have been published unfinished: split the checkpoint again, or "
                        "compare the output with its source: shardtool diff SOURCE {}",
                        path_argument(part.path)));
}

void refuse_files_of_ranks(const Checkpoint& part) {
  if (part.format != format::kFilesOfRanks) return;
  throw Error(ErrorCode::kCoverage, "the file has the shards of one rank, not whole tensors")
      .at({part.path, 0, 0, ""})
      .note("found", "\"shardtool.rank\" in its header, and no manifest.json opened with it")
      .help("give the folder that `shardtool split` or `reshard` wrote, with its manifest.json");
}

}  // namespace

TensorsByName tensors_by_name(const LogicalCheckpoint& checkpoint) {
  TensorsByName names;
  for (const LogicalTensor& tensor : checkpoint.tensors) names[tensor.spec.name] = &tensor;
  return names;
}

std::vector<TensorSpec> LogicalCheckpoint::specs() const {
  std::vector<TensorSpec> specs;
  specs.reserve(tensors.size());
  for (const LogicalTensor& tensor : tensors) specs.push_back(tensor.spec);
  return specs;
}

std::vector<std::string> LogicalCheckpoint::warnings() const {
  std::vector<std::string> texts;
  const auto is_empty = [](const LogicalTensor& t) { return element_count(t.spec.shape) == 0; };
  if (!tensors.empty() && std::ranges::all_of(tensors, is_empty)) {
    texts.push_back(
        fmt::format("none of the {} has an element. DeepSpeed's ZeRO 3 leaves such files of single "
                    "ranks; zero_to_fp32.py, which it puts beside them, makes whole weights",
                    plural(std::ssize(tensors), "tensor")));
  }
  for (const Checkpoint& part : parts) {
    for (const format::Warning& warning : part.warnings) texts.push_back(text_of(warning));
    if (!part.manifest) continue;
    if (const auto found = format::without_digest(*part.manifest); !found.empty()) {
      texts.push_back(fmt::format("{}: {}, the first is '{}'", format::kManifestName,
                                  undigested_text(found.size()),
                                  quote_for_message(found.front()->name)));
    }
  }
  return texts;
}

std::optional<mapping::ModelConfig> LogicalCheckpoint::config() const {
  const std::string& path = parts.front().config_path;
  if (path.empty()) return std::nullopt;
  return load_config(path);
}

mapping::ModelConfig LogicalCheckpoint::load_config(const std::string& path) const {
  if (!is_dequantized) return mapping::load_config(path);
  constexpr const char* kName = "config.json";
  return mapping::parse_config(
      without_quantization(store::read_source_text(path, kMaxConfigBytes), kName), kName);
}

LogicalCheckpoint join_parts(std::vector<Checkpoint> parts) {
  LogicalCheckpoint all;
  all.parts = std::move(parts);
  std::vector<int> first_file;
  for (const Checkpoint& part : all.parts) {
    if (all.parts.size() > 1) refuse_files_of_ranks(part);
    first_file.push_back(static_cast<int>(all.files.size()));
    for (const format::SourceFile& file : part.files) {
      all.files.push_back({file.path, file.identity});
    }
  }
  if (all.parts.size() > 1) check_one_split(all.parts);
  index::HolderSetPool pool;
  if (all.parts.front().manifest) {
    add_shards(all, first_file, pool);
    add_constants(all, first_file);
    all.elsewhere = tensors_elsewhere(all.parts);
  } else if (!all.parts.front().chunked.empty()) {
    add_chunked(all, all.parts.front());
  } else {
    add_whole(all, std::move(all.parts.front().tensors), pool);
  }
  // The logical tensors replace the parts' own.
  for (Checkpoint& part : all.parts) part.tensors = {};
  return all;
}

LogicalCheckpoint open_stored(const std::vector<std::string>& locations) {
  format::require_locations(locations);
  std::vector<Checkpoint> parts;
  for (const std::string& location : locations) {
    parts.push_back(format::open_checkpoint(location));
    if (!parts.back().manifest) continue;
    if (auto misnamed = misnamed_tensor(parts.back())) throw *std::move(misnamed);
  }
  return join_parts(std::move(parts));
}

void refuse_files_of_ranks(const LogicalCheckpoint& source) {
  for (const Checkpoint& part : source.parts) refuse_files_of_ranks(part);
}

void require_digests(const LogicalCheckpoint& source) {
  for (const Checkpoint& part : source.parts) require_digests(part);
}

}  // namespace shardtool::api
