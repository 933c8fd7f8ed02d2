#include "lib/api/transfer/sources/recorded_bytes.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "lib/api/dequantize/unpacked_tensor.h"
#include "lib/api/transfer/sources/replicas.h"
#include "lib/api/transfer/sources/stored_data.h"
#include "lib/check/data/data.h"
#include "lib/exec/compare.h"

namespace shardtool::api {
namespace {

using DifferentPart = engine::RecordedBytes::DifferentPart;

std::optional<kernels::Hash128> recorded_hash(const LogicalTensor& tensor, i64 rank) {
  for (const format::TensorRecord* record : tensor.records) {
    for (const format::ShardRecord& shard : record->shards) {
      if (shard.rank == rank) return shard.xxh3;
    }
  }
  return std::nullopt;
}

/// Tensors of `unread` that process `comm.rank()` reads.
std::vector<check::DataTensor> own_share(const LogicalCheckpoint& shards,
                                         const std::set<size_t>& unread,
                                         const comm::Communicator& comm) {
  std::vector<check::DataTensor> own;
  int number = 0;
  for (const size_t tensor : unread) {
    if (number++ % comm.size() != comm.rank()) continue;
    own.push_back(stored_data(shards.tensors[tensor]));
  }
  return own;
}

/// Reads tensors of the shards. Returns the findings that they differ from their hashes.
std::vector<check::Finding> read_differences(const LogicalCheckpoint& shards,
                                             const exec::Resources& resources,
                                             std::span<const check::DataTensor> tensors) {
  if (tensors.empty()) return {};
  std::vector<check::DataFile> files;
  for (const exec::SurveyedFile& file : shards.files) files.push_back({file, file.path});
  check::Findings findings{check::Profile("")};
  check::check_data(tensors, files, resources, findings);
  findings.sort();
  std::vector<check::Finding> different = findings.all();
  std::erase_if(different, [](const check::Finding& one) {
    return one.rule != check::CheckRule::kShardHash && one.rule != check::CheckRule::kDigest;
  });
  return different;
}

/// Keeps one difference per part, and that of a whole tensor only if none of its parts differs.
void keep_one_each(std::vector<DifferentPart>& sorted) {
  const auto same = [](const DifferentPart& a, const DifferentPart& b) {
    return a.tensor == b.tensor && a.rank == b.rank;
  };
  const auto [begin, end] = std::ranges::unique(sorted, same);
  sorted.erase(begin, end);
  std::set<std::string> with_parts;
  for (const DifferentPart& one : sorted) {
    if (one.rank != engine::RecordedBytes::kWhole) with_parts.insert(one.tensor);
  }
  std::erase_if(sorted, [&](const DifferentPart& one) {
    return one.rank == engine::RecordedBytes::kWhole && with_parts.contains(one.tensor);
  });
}

/// Parts of a tensor that are judged: its shards, or all of one that no device cuts.
i64 parts_of(const LogicalTensor& tensor) {
  return std::max<i64>(std::ssize(tensor.ranks), 1);
}

/// One move per part, from the reference to the part's region.
struct PartMoves {
  std::vector<exec::TensorMove> moves;
  std::vector<i64> ranks;

  void add(const LogicalTensor& whole, const LogicalTensor& tensor) {
    if (tensor.ranks.empty()) return add(whole, tensor.side, 0);
    for (size_t part = 0; part < tensor.ranks.size(); ++part) {
      index::HolderSet region(tensor.spec.shape);
      region.add(tensor.side.holders->region(static_cast<int>(part)));
      add(whole, {std::make_shared<index::HolderSet>(std::move(region)), {tensor.side.slots[part]}},
          tensor.ranks[part]);
    }
  }

 private:
  void add(const LogicalTensor& whole, exec::MoveSide to, i64 rank) {
    moves.push_back({whole.spec.name,
                     whole.stored_dtype(),
                     whole.spec.shape,
                     whole.side,
                     std::move(to),
                     {},
                     whole.cast_from ? std::optional(whole.spec.dtype) : std::nullopt,
                     whole.unpacked});
    ranks.push_back(rank);
  }
};

std::string file_of(const LogicalCheckpoint& shards, const DifferentPart& difference) {
  if (difference.rank == engine::RecordedBytes::kWhole) return shards.parts.front().path;
  for (const LogicalTensor& tensor : shards.tensors) {
    if (tensor.spec.name != difference.tensor) continue;
    const auto holder = std::ranges::find(tensor.ranks, difference.rank) - tensor.ranks.begin();
    const exec::Slot& slot = tensor.side.slots.at(static_cast<size_t>(holder));
    return shards.files.at(static_cast<size_t>(slot.file)).path;
  }
  return "";
}

}  // namespace

engine::RecordedHashes recorded_hashes(const LogicalCheckpoint& shards,
                                       std::vector<bool> is_gathered) {
  engine::RecordedHashes recorded;
  recorded.tensors = shards.tensors.size();
  recorded.of_part = [&shards, is_gathered = std::move(is_gathered)](
                         size_t tensor, i64 rank) -> std::optional<kernels::Hash128> {
    const bool is_shifted = !shards.tensors[tensor].shifts.empty();  // compared as plain values
    if (is_shifted || is_gathered[tensor]) return std::nullopt;
    return recorded_hash(shards.tensors[tensor], rank);
  };
  recorded.of_whole = [&shards](size_t tensor) { return shards.tensors[tensor].digest; };
  return recorded;
}

i64 hold_unread(const LogicalCheckpoint& shards, const ValidateOptions& options,
                comm::Communicator& comm, engine::RecordedBytes& recorded) {
  i64 bytes = 0;
  for (const size_t tensor : recorded.unread) {
    bytes += check::stored_bytes(stored_data(shards.tensors[tensor]));
  }
  const auto own = own_share(shards, recorded.unread, comm);
  engine::RecordedBytes read;
  for (const check::Finding& one : read_differences(shards, options.resources, own))
    read.different.push_back({one.tensor, one.rank, one.found, one.expected});
  if (comm.rank() == 0) {  // every process knows these
    auto& all = read.different;
    all.insert(all.end(), recorded.different.begin(), recorded.different.end());
  }
  recorded = engine::merged(read, comm);
  keep_one_each(recorded.different);
  return bytes;
}

std::vector<check::Finding> wrong_constants(const LogicalCheckpoint& shards,
                                            const exec::Resources& resources) {
  std::vector<check::DataTensor> constants;
  for (const LogicalConstant& constant : shards.constants)
    constants.push_back(stored_data(constant));
  return read_differences(shards, resources, constants);
}

i64 compare_unread(const LogicalCheckpoint& shards, const LogicalCheckpoint& reference,
                   const ValidateOptions& options, comm::Communicator& comm,
                   const engine::Verdict& verdict, engine::ComparedBytes& compared) {
  std::map<std::string_view, const LogicalTensor*> wholes;
  for (const LogicalTensor& tensor : reference.tensors) wholes[tensor.spec.name] = &tensor;
  PartMoves own;
  i64 parts = 0;
  int number = 0;
  for (size_t t = 0; t < shards.tensors.size(); ++t) {
    if (!verdict.judged.contains(t)) continue;
    const LogicalTensor& tensor = shards.tensors[t];
    const auto whole = wholes.find(tensor.spec.name);
    const bool is_proved = compared.tensors.contains(t) || verdict.tested.contains(t);
    if (is_proved || whole == wholes.end()) continue;
    const TensorSpec& spec = whole->second->spec;
    const bool is_computed =
        !tensor.shifts.empty() || !whole->second->shifts.empty() || tensor.unpacked;
    if (spec.dtype != tensor.spec.dtype || spec.shape != tensor.spec.shape || is_computed) continue;
    parts += parts_of(tensor);
    if (number++ % comm.size() == comm.rank()) own.add(*whole->second, tensor);
  }
  if (parts == 0) return 0;
  const auto found = exec::compare(own.moves, exec::open_sources(reference.files),
                                   exec::open_sources(shards.files), options.resources);
  engine::RecordedBytes read;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].bytes != 0) read.different.push_back({own.moves[i].name, own.ranks[i], "", ""});
  }
  for (const DifferentPart& one : engine::merged(read, comm).different)
    compared.different.push_back({one.tensor, one.rank});
  std::ranges::sort(compared.different, {},
                    [](const auto& part) { return std::tie(part.tensor, part.rank); });
  compared.parts += parts;
  compared.differing = std::ssize(compared.different);
  return parts;
}

std::vector<check::Finding> findings_of(const LogicalCheckpoint& shards,
                                        const engine::RecordedBytes& recorded) {
  std::vector<check::Finding> findings;
  for (const DifferentPart& one : recorded.different) {
    const bool is_whole = one.rank == engine::RecordedBytes::kWhole;
    findings.push_back({.rule = is_whole ? check::CheckRule::kDigest : check::CheckRule::kShardHash,
                        .message = is_whole
                                       ? "the shards together are not the tensor that was split"
                                       : "the bytes are not those that the manifest records",
                        .file = file_of(shards, one),
                        .tensor = one.tensor,
                        .rank = one.rank,
                        .found = one.found,
                        .expected = one.expected,
                        .fix = "split the checkpoint again, or copy the file again",
                        .severity = check::Severity::kError});
  }
  return findings;
}

}  // namespace shardtool::api
