#include "shardtool/api/logical_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "shardtool/base/error.h"
#include "shardtool/index/holder_set_pool.h"

namespace shardtool::api {
namespace {

using checkpoint::Checkpoint;
using checkpoint::Manifest;
using checkpoint::ShardRecord;
using checkpoint::TensorRecord;

void add_whole(LogicalCheckpoint& into, std::vector<checkpoint::StoredTensor> stored,
               index::HolderSetPool& pool) {
  into.tensors.reserve(stored.size());
  for (checkpoint::StoredTensor& tensor : stored) {
    LogicalTensor logical;
    logical.side = {pool.whole(tensor.shape), {{tensor.file, tensor.offset}}};
    logical.spec = {std::move(tensor.name), tensor.dtype, std::move(tensor.shape)};
    into.tensors.push_back(std::move(logical));
  }
}

Error inconsistent(const Checkpoint& part, const std::string& message) {
  return Error(ErrorCode::kManifestInvalid, message).at({part.path + "/manifest.json", 0, 0, {}});
}

void check_same_split(const Checkpoint& first, const Checkpoint& part) {
  const Manifest& a = *first.manifest;
  const Manifest& b = *part.manifest;
  if (a.mesh != b.mesh) {
    throw inconsistent(part, fmt::format("the mesh is {}, but {} has {}", to_string(b.mesh),
                                         first.path, to_string(a.mesh)));
  }
  const auto same = [](const TensorRecord& x, const TensorRecord& y) {
    return x.name == y.name && x.dtype == y.dtype && x.shape == y.shape;
  };
  const bool equal =
      std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(), same);
  if (!equal) throw inconsistent(part, "its tensors are not those of " + first.path);
}

/// The shards of a tensor in one part more.
void add_part(LogicalTensor& into, const TensorRecord& record, int first_file) {
  if (!record.shifts.empty()) into.shifts.resize(into.ranks.size());
  for (const ShardRecord& shard : record.shards) {
    into.side.slots.push_back({first_file + shard.file, shard.offset});
    into.ranks.push_back(shard.rank);
  }
  into.shifts.insert(into.shifts.end(), record.shifts.begin(), record.shifts.end());
  if (!into.shifts.empty()) into.shifts.resize(into.ranks.size());
}

/// Who has what of a tensor, over all parts.
std::shared_ptr<const index::HolderSet> joined_holders(const std::vector<Checkpoint>& parts,
                                                       size_t tensor, index::HolderSetPool& pool) {
  const TensorRecord& first = parts.front().manifest->tensors[tensor];
  if (parts.size() == 1) return first.holders;
  std::vector<index::Region> regions;
  for (const Checkpoint& part : parts) {
    const index::HolderSet& holders = *part.manifest->tensors[tensor].holders;
    for (int h = 0; h < holders.size(); ++h) regions.push_back(holders.region(h));
  }
  return pool.of(first.shape, regions);
}

void add_shards(LogicalCheckpoint& into, const std::vector<int>& first_file,
                index::HolderSetPool& pool) {
  const Manifest& first = *into.parts.front().manifest;
  into.tensors.reserve(first.tensors.size());
  for (size_t t = 0; t < first.tensors.size(); ++t) {
    const TensorRecord& record = first.tensors[t];
    LogicalTensor& logical = into.tensors.emplace_back();
    logical.spec = {record.name, record.dtype, record.shape};
    logical.side.holders = joined_holders(into.parts, t, pool);
    logical.digest = record.digest;
    logical.record = &record;
    for (size_t p = 0; p < into.parts.size(); ++p) {
      add_part(logical, into.parts[p].manifest->tensors[t], first_file[p]);
    }
  }
}

void check_ranks_once(const LogicalCheckpoint& all) {
  std::set<i64> seen;
  for (const Checkpoint& part : all.parts) {
    for (const checkpoint::RankRecord& rank : part.manifest->ranks) {
      if (seen.insert(rank.rank).second) continue;
      throw inconsistent(part,
                         fmt::format("rank {} is in another of the given folders, too", rank.rank))
          .help("give each folder once");
    }
  }
}

}  // namespace

std::vector<TensorSpec> LogicalCheckpoint::specs() const {
  std::vector<TensorSpec> specs;
  specs.reserve(tensors.size());
  for (const LogicalTensor& tensor : tensors) specs.push_back(tensor.spec);
  return specs;
}

std::vector<std::string> LogicalCheckpoint::warnings() const {
  std::vector<std::string> texts;
  for (const Checkpoint& part : parts) {
    for (const checkpoint::Warning& warning : part.warnings) {
      texts.push_back(warning.file.empty() ? warning.message
                                           : warning.file + ": " + warning.message);
    }
  }
  return texts;
}

std::optional<mapping::ModelConfig> LogicalCheckpoint::config() const {
  const std::string& path = parts.front().config_path;
  if (path.empty()) return std::nullopt;
  return mapping::load_config(path);
}

LogicalCheckpoint join_parts(std::vector<Checkpoint> parts) {
  LogicalCheckpoint all;
  all.parts = std::move(parts);
  std::vector<int> first_file;
  for (const Checkpoint& part : all.parts) {
    if (all.parts.size() > 1 && !part.manifest) {
      throw Error(ErrorCode::kManifestInvalid,
                  fmt::format("{} is a whole checkpoint; only outputs of one split can be joined",
                              part.path));
    }
    first_file.push_back(static_cast<int>(all.files.size()));
    for (const checkpoint::SourceFile& file : part.files) {
      all.files.push_back({file.path, file.identity});
    }
    if (&part != &all.parts.front()) check_same_split(all.parts.front(), part);
  }
  index::HolderSetPool pool;
  if (all.is_sharded()) {
    check_ranks_once(all);
    add_shards(all, first_file, pool);
  } else {
    add_whole(all, std::move(all.parts.front().tensors), pool);
  }
  // From here on the logical tensors say it all.
  for (Checkpoint& part : all.parts) part.tensors = {};
  return all;
}

LogicalCheckpoint open_logical(const std::vector<std::string>& locations) {
  std::vector<Checkpoint> parts;
  for (const std::string& location : locations) {
    parts.push_back(checkpoint::open_checkpoint(location));
  }
  return join_parts(std::move(parts));
}

}  // namespace shardtool::api
