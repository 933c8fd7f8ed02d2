#include "lib/api/transfer/output_manifest.h"

#include <set>
#include <string_view>

#include "lib/api/dequantize/unpacked_tensor.h"

namespace shardtool::api {
namespace {

/// The files of the source. Samples are for outputs of some ranks: those of all have digests.
std::vector<format::FileRecord> source_records(const LogicalCheckpoint& source,
                                               const TargetLayout& target) {
  const format::Checkpoint& first = source.parts.front();
  std::vector<format::FileRecord> records;
  if (first.manifest) {
    records = first.manifest->source;
    for (format::FileRecord& record : records) {
      if (!target.leaves_ranks_out()) record.sampled_xxh3.clear();
    }
    return records;
  }
  for (const format::SourceFile& file : first.files) {
    records.push_back({file.name, file.identity.size, file.header_xxh3});
  }
  for (size_t f = 0; f < source.sampled.size(); ++f) records[f].sampled_xxh3 = source.sampled[f];
  return records;
}

std::vector<format::ShardRecord> shard_records(const TargetTensor& tensor,
                                               const std::vector<exec::Slot>& slots, Dtype dtype,
                                               const exec::CopiedTensor& copied) {
  std::vector<format::ShardRecord> records;
  records.reserve(tensor.ranks.size());
  for (size_t h = 0; h < tensor.ranks.size(); ++h) {
    const i64 bytes = exec::holder_bytes(*tensor.holders, static_cast<int>(h), dtype);
    records.push_back({tensor.ranks[h], slots[h].file, slots[h].offset, bytes});
    if (!copied.xxh3.empty()) records.back().xxh3 = copied.xxh3[h];
  }
  return records;
}

/// The casts that the source records, and this run's.
std::vector<format::CastRecord> cast_records(const LogicalTensor& tensor,
                                             const exec::CopiedTensor& copied) {
  std::vector<format::CastRecord> casts;
  if (tensor.record() != nullptr) casts = tensor.record()->casts;
  if (!tensor.cast_from) return casts;
  casts.push_back({*tensor.cast_from, tensor.spec.dtype, {}});
  if (copied.is_whole) casts.back().digest = copied.source_digest();
  return casts;
}

/// This run's dequantisation, or the one that the source records.
std::optional<format::DequantizeRecord> dequantize_record(const LogicalTensor& tensor,
                                                          const exec::CopiedTensor& copied) {
  if (tensor.unpacked) {
    const bool is_known = copied.is_whole && copied.computed;
    return tensor.unpacked->record(is_known ? &*copied.computed : nullptr);
  }
  return tensor.record() == nullptr ? std::nullopt : tensor.record()->dequantized;
}

}  // namespace

format::Manifest manifest_head(const LogicalCheckpoint& source, const TargetLayout& target,
                               const OutputPlan& plan) {
  format::Manifest manifest;
  manifest.tool_version = SHARDTOOL_VERSION;
  manifest.source = source_records(source, target);
  manifest.mesh = target.mesh;
  const bool is_plain_whole = target.is_whole && !target.engine_files;
  manifest.layout = is_plain_whole ? format::kWholeLayout : target.layout;
  manifest.format = target.form.format;
  manifest.has_chunks = target.form.has_chunks;
  manifest.tied = target.tied;
  manifest.dropped = target.dropped;
  manifest.elsewhere = target.elsewhere;
  manifest.axes = target.axes;
  manifest.allows_empty_shards = target.allows_empty_shards;
  manifest.mapping = target.mapping;
  for (const auto& file : plan.files) {
    manifest.files.push_back({file.name, file.size, file.header_xxh3});
  }
  std::set<size_t> constants;  // ranks have the same ones
  for (const ConstantPlace& place : plan.constants) constants.insert(place.output);
  for (const size_t output : constants) {
    manifest.constants.push_back(constant_record((*target.output)[output]));
  }
  for (size_t r = 0; r < target.ranks.size(); ++r) {
    format::RankRecord record{target.ranks[r], {}, plan.files_of_rank[r]};
    const mesh::Coordinate coordinate = target.mesh.coordinate(target.ranks[r]);
    for (size_t a = 0; a < coordinate.size(); ++a) {
      record.coordinate.emplace_back(target.mesh.axes()[a].name, coordinate[a]);
    }
    manifest.ranks.push_back(std::move(record));
  }
  return manifest;
}

format::TensorRecord tensor_record(const LogicalCheckpoint& source, const TargetLayout& target,
                                   const OutputPlan& plan, size_t tensor,
                                   const exec::CopiedTensor& copied) {
  const TargetTensor& wanted = target.tensors[tensor];
  const LogicalTensor& read = source.tensors[wanted.source];
  const TensorSpec& spec = read.spec;
  format::TensorRecord record;
  record.name = spec.name;
  record.dtype = spec.dtype;
  record.shape = spec.shape;
  record.cut = wanted.cut;
  record.stored = wanted.stored_as;
  record.stored_on = wanted.stored_on;
  record.is_unread = copied.is_unread;
  const bool has_same_values = !read.cast_from && !read.unpacked;
  if (copied.is_whole && !copied.is_unread) {
    record.digest = copied.digest;
  } else if (has_same_values) {
    record.digest = read.digest;
  }
  record.casts = cast_records(read, copied);
  record.dequantized = dequantize_record(read, copied);
  record.shards = shard_records(wanted, plan.slots[tensor], spec.dtype, copied);
  record.holders = wanted.holders;
  record.shifts = wanted.shifts;
  return record;
}

i64 manifest_bytes(const LogicalCheckpoint& source, const TargetLayout& target,
                   const OutputPlan& plan) {
  const auto record = [&](size_t t) {
    exec::CopiedTensor copied;
    copied.is_whole = true;
    copied.xxh3.resize(target.tensors[t].ranks.size());
    return tensor_record(source, target, plan, t, copied);
  };
  i64 bytes = 0;
  write_json(manifest_head(source, target, plan), target.tensors.size(), record,
             [&](std::string_view text) { bytes += std::ssize(text); });
  return bytes;
}

}  // namespace shardtool::api
