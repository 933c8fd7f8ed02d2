#include "shardtool/api/output_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "shardtool/kernels/xxh3/xxh3.h"

namespace shardtool::api {
namespace {

using checkpoint::FilePlan;
using checkpoint::Manifest;

constexpr const char* kToolVersion = SHARDTOOL_VERSION;

/// Appends a plan's files and gives its places as slots of the whole run.
std::vector<exec::Slot> append(OutputPlan& output, FilePlan plan) {
  const int first = static_cast<int>(output.files.size());
  std::vector<exec::Slot> slots;
  for (const auto& place : plan.places) slots.push_back({first + place.file, place.offset});
  output.files_of_rank.emplace_back();
  for (size_t f = 0; f < plan.files.size(); ++f) {
    output.files_of_rank.back().push_back(first + static_cast<int>(f));
  }
  std::move(plan.files.begin(), plan.files.end(), std::back_inserter(output.files));
  return slots;
}

/// The shards of one rank: (target tensor, holder) and what they look like.
struct RankShards {
  std::vector<std::pair<size_t, size_t>> holders;
  std::vector<TensorSpec> specs;
};

std::map<i64, RankShards> shards_by_rank(const LogicalCheckpoint& source,
                                         const TargetLayout& target) {
  std::map<i64, RankShards> by_rank;
  for (const i64 rank : target.ranks) by_rank[rank];
  for (size_t t = 0; t < target.tensors.size(); ++t) {
    const TargetTensor& tensor = target.tensors[t];
    const TensorSpec& spec = source.tensors[tensor.source].spec;
    for (size_t h = 0; h < tensor.ranks.size(); ++h) {
      RankShards& shards = by_rank[tensor.ranks[h]];
      shards.holders.emplace_back(t, h);
      shards.specs.push_back(
          {spec.name, spec.dtype, local_shape(tensor.holders->region(static_cast<int>(h)))});
    }
  }
  return by_rank;
}

std::optional<std::uint64_t> parse_digest(const std::string& hex) {
  if (hex.empty()) return std::nullopt;
  return std::strtoull(hex.c_str(), nullptr, 16);
}

i64 tensor_bytes(const TensorSpec& spec) {
  return byte_size(spec.dtype, spec.shape).value_or(0);
}

std::vector<checkpoint::FileRecord> source_records(const LogicalCheckpoint& source) {
  const checkpoint::Checkpoint& first = source.parts.front();
  if (first.manifest) return first.manifest->source;
  std::vector<checkpoint::FileRecord> records;
  for (const checkpoint::SourceFile& file : first.files) {
    records.push_back({file.name, file.identity.size, file.header_xxh3});
  }
  return records;
}

std::vector<checkpoint::ShardRecord> shard_records(const TargetTensor& tensor,
                                                   const std::vector<exec::Slot>& slots,
                                                   Dtype dtype, const exec::CopiedTensor& copied) {
  std::vector<checkpoint::ShardRecord> records;
  for (size_t h = 0; h < tensor.ranks.size(); ++h) {
    index::Region region = tensor.holders->region(static_cast<int>(h));
    const i64 bytes = byte_size(dtype, local_shape(region)).value_or(0);
    records.push_back({tensor.ranks[h], slots[h].file, slots[h].offset, bytes, std::move(region),
                       copied.xxh3[h]});
    if (tensor.shifts.empty()) continue;
    records.back().shift = {tensor.shifts[h].addends, {}, tensor.shifts[h].halvings};
  }
  return records;
}

/// The local index of a global one, or nothing.
std::optional<i64> local_index(const index::AxisMap& map, i64 global) {
  for (const index::Piece& piece : map.pieces()) {
    if (global >= piece.global && global < piece.global + piece.size) {
      return piece.local + global - piece.global;
    }
  }
  return std::nullopt;
}

/// The elements that follow each other from the first on, in a row-major array of this region and
/// in the whole tensor alike.
i64 leading_run(const index::Region& region) {
  i64 run = 1;
  for (size_t axis = region.size(); axis-- > 0;) {
    const auto& pieces = region[axis].pieces();
    if (pieces.empty()) return 0;
    run *= pieces.front().size;
    if (pieces.front().size != region[axis].global_size()) return run;
  }
  return run;
}

/// Where in its file the first element of a region lies, if a long run begins there and here.
i64 origin_of(const LogicalTensor& tensor, const index::Region& wanted) {
  constexpr i64 kLongBytes = 64 << 10;
  const i64 element_bits = bits(tensor.spec.dtype);
  if (leading_run(wanted) * element_bits / 8 < kLongBytes) return checkpoint::kNoOrigin;
  const index::HolderSet& holders = *tensor.side.holders;
  for (int h = 0; h < holders.size(); ++h) {
    const index::Region held = holders.region(h);
    i64 at = 0;
    bool has_it = leading_run(held) * element_bits / 8 >= kLongBytes;
    for (size_t axis = 0; axis < wanted.size() && has_it; ++axis) {
      const auto local = local_index(held[axis], wanted[axis].pieces().front().global);
      has_it = local.has_value();
      at = at * held[axis].local_size() + local.value_or(0);
    }
    if (has_it) return tensor.side.slots[static_cast<size_t>(h)].offset + at * element_bits / 8;
  }
  return checkpoint::kNoOrigin;
}

}  // namespace

bool is_shifted(const LogicalCheckpoint& source, const TargetTensor& tensor) {
  return !tensor.shifts.empty() || !source.tensors[tensor.source].shifts.empty();
}

OutputPlan plan_output(const LogicalCheckpoint& source, const TargetLayout& target,
                       i64 max_file_size, Extents extents) {
  OutputPlan output;
  for (const TargetTensor& tensor : target.tensors) output.slots.emplace_back(tensor.ranks.size());
  for (const auto& [rank, shards] : shards_by_rank(source, target)) {
    std::vector<i64> origins;
    if (extents == Extents::kShared) {
      for (const auto& [tensor, holder] : shards.holders) {
        const TargetTensor& wanted = target.tensors[tensor];
        origins.push_back(origin_of(source.tensors[wanted.source],
                                    wanted.holders->region(static_cast<int>(holder))));
      }
    }
    FilePlan plan = target.is_whole
                        ? checkpoint::plan_whole_files(shards.specs, max_file_size, origins)
                        : checkpoint::plan_rank_files(rank, shards.specs, max_file_size, origins);
    if (target.is_whole) output.index_text = index_text(plan, shards.specs).value_or("");
    const std::vector<exec::Slot> slots = append(output, std::move(plan));
    for (size_t i = 0; i < slots.size(); ++i) {
      const auto [tensor, holder] = shards.holders[i];
      output.slots[tensor][holder] = slots[i];
    }
  }
  return output;
}

std::vector<exec::TensorMove> plan_moves(const LogicalCheckpoint& source,
                                         const TargetLayout& target, const OutputPlan& output) {
  std::vector<exec::TensorMove> moves;
  for (size_t t = 0; t < target.tensors.size(); ++t) {
    const LogicalTensor& from = source.tensors[target.tensors[t].source];
    moves.push_back({from.spec.name,
                     from.spec.dtype,
                     from.spec.shape,
                     from.side,
                     {target.tensors[t].holders, output.slots[t]},
                     parse_digest(from.digest)});
  }
  return moves;
}

std::vector<exec::TensorMove> plan_fills(const LogicalCheckpoint& source,
                                         const TargetLayout& target, const OutputPlan& output) {
  std::vector<exec::TensorMove> moves;
  for (size_t t = 0; t < target.tensors.size(); ++t) {
    if (!target.tensors[t].fills) continue;
    const LogicalTensor& from = source.tensors[target.tensors[t].source];
    for (const Fill& fill : *target.tensors[t].fills) {
      std::vector<exec::Slot> slots;
      for (const size_t holder : fill.of) slots.push_back(output.slots[t][holder]);
      moves.push_back({from.spec.name,
                       from.spec.dtype,
                       from.spec.shape,
                       from.side,
                       {fill.holders, std::move(slots)},
                       std::nullopt});
    }
  }
  return moves;
}

namespace {

void add_alterations(const TargetTensor& tensor, const std::string& name, TransformPlan& plan) {
  for (const std::string& what : tensor.transforms) {
    const auto found = std::find_if(plan.alterations.begin(), plan.alterations.end(),
                                    [&](const Alteration& known) { return known.what == what; });
    if (found == plan.alterations.end()) {
      plan.alterations.push_back({what, name, 1});
    } else {
      ++found->tensors;
    }
  }
}

/// The bytes of a shard, and how many of them hold no element.
struct ShardBytes {
  i64 all = 0;
  i64 padding = 0;
};
ShardBytes shard_bytes(const index::Region& region, Dtype dtype) {
  const i64 all = byte_size(dtype, local_shape(region)).value_or(0);
  return {all, all - image_size(region) * bits(dtype) / 8};
}

}  // namespace

TransformPlan summarize(const LogicalCheckpoint& source, const TargetLayout& target,
                        const OutputPlan& output) {
  TransformPlan plan;
  plan.tensors = static_cast<i64>(target.tensors.size());
  plan.dropped = static_cast<i64>(target.dropped.size());
  plan.mesh = target.is_whole ? "" : to_string(target.mesh);
  plan.ranks = target.is_whole ? 0 : static_cast<i64>(target.ranks.size());
  plan.files = static_cast<i64>(output.files.size());
  plan.uneven = target.uneven;
  for (const TargetTensor& tensor : target.tensors) {
    const TensorSpec& spec = source.tensors[tensor.source].spec;
    ++(tensor.is_sharded ? plan.split : plan.replicated);
    plan.bytes_in += tensor_bytes(spec);
    i64 written = 0;
    i64 padding = 0;
    for (int h = 0; h < tensor.holders->size(); ++h) {
      const ShardBytes shard = shard_bytes(tensor.holders->region(h), spec.dtype);
      written += shard.all;
      padding += shard.padding;
    }
    add_alterations(tensor, spec.name, plan);
    plan.bytes_out += written;
    plan.replicated_bytes += std::max<i64>(0, written - padding - tensor_bytes(spec));
    plan.padding_bytes += padding;
  }
  return plan;
}

Manifest make_manifest(const LogicalCheckpoint& source, const TargetLayout& target,
                       const OutputPlan& plan, std::span<const exec::CopiedTensor> copied) {
  Manifest manifest;
  manifest.tool_version = kToolVersion;
  manifest.source = source_records(source);
  manifest.mesh = target.mesh;
  manifest.layout = target.is_whole ? "whole" : "plain";
  manifest.tied = target.tied;
  manifest.dropped = target.dropped;
  manifest.mapping = target.mapping;
  for (const auto& file : plan.files) {
    manifest.files.push_back(
        {file.name, file.size, kernels::xxh3_hex(std::as_bytes(std::span(file.header)))});
  }
  for (size_t r = 0; r < target.ranks.size(); ++r) {
    checkpoint::RankRecord record{target.ranks[r], {}, plan.files_of_rank[r]};
    const mesh::Coordinate coordinate = target.mesh.coordinate(target.ranks[r]);
    for (size_t a = 0; a < coordinate.size(); ++a) {
      record.coordinate.emplace_back(target.mesh.axes()[a].name, coordinate[a]);
    }
    manifest.ranks.push_back(std::move(record));
  }
  for (size_t t = 0; t < target.tensors.size(); ++t) {
    const TargetTensor& tensor = target.tensors[t];
    const TensorSpec& spec = source.tensors[tensor.source].spec;
    manifest.tensors.push_back({spec.name, spec.dtype, spec.shape, tensor.rule, tensor.axes,
                                copied[t].is_whole ? fmt::format("{:016x}", copied[t].digest) : "",
                                tensor.transforms, tensor.bias,
                                shard_records(tensor, plan.slots[t], spec.dtype, copied[t])});
  }
  return manifest;
}

}  // namespace shardtool::api
