#include "lib/api/transfer/output_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include "lib/api/dequantize/unpacked_tensor.h"
#include "lib/api/transfer/sources/boxes.h"

namespace shardtool::api {
namespace {

using format::FilePlan;

/// Appends a plan's files and returns the number of the first one.
int append_files(OutputPlan& output, FilePlan& plan) {
  const int first = static_cast<int>(output.files.size());
  output.files_of_rank.emplace_back();
  for (size_t f = 0; f < plan.files.size(); ++f) {
    output.files_of_rank.back().push_back(first + static_cast<int>(f));
  }
  std::move(plan.files.begin(), plan.files.end(), std::back_inserter(output.files));
  return first;
}

exec::Slot& slot_of(OutputPlan& output, ShardNumber shard) {
  return output.slots[static_cast<size_t>(shard.tensor)][static_cast<size_t>(shard.holder)];
}

/// Appends a plan's files and stores its places as slots of the whole run.
void append(OutputPlan& output, FilePlan plan, std::span<const ShardNumber> shards) {
  const int first = append_files(output, plan);
  for (size_t i = 0; i < shards.size(); ++i) {
    slot_of(output, shards[i]) = {first + plan.places[i].file, plan.places[i].offset};
  }
}

/// Same for entries of several shards: these follow each other.
void append(OutputPlan& output, FilePlan plan, const LogicalCheckpoint& source,
            const TargetLayout& target, std::span<const FileEntry> entries) {
  const int first = append_files(output, plan);
  for (size_t i = 0; i < entries.size(); ++i) {
    exec::Slot next{first + plan.places[i].file, plan.places[i].offset};
    if (entries[i].shards.empty()) output.constants.push_back({next, entries[i].output});
    for (const ShardNumber shard : entries[i].shards) {
      const TargetTensor& tensor = target.tensors[static_cast<size_t>(shard.tensor)];
      slot_of(output, shard) = next;
      next.offset += exec::holder_bytes(*tensor.holders, shard.holder,
                                        source.tensors[tensor.source].spec.dtype);
    }
  }
}

const format::Writer& writer_of(const TargetLayout& target) {
  return format::find_writer(target.form.format);
}

/// Shards by rank, and per rank in tensor order.
std::vector<std::vector<ShardNumber>> shards_by_rank(const TargetLayout& target) {
  std::unordered_map<i64, size_t> number;
  for (const i64 rank : target.ranks) number.emplace(rank, number.size());
  std::vector<std::vector<ShardNumber>> shards(target.ranks.size());
  for (size_t t = 0; t < target.tensors.size(); ++t) {
    const std::vector<i64>& ranks = target.tensors[t].ranks;
    for (size_t h = 0; h < ranks.size(); ++h) {
      shards[number.at(ranks[h])].push_back(
          {static_cast<std::int32_t>(t), static_cast<std::int32_t>(h)});
    }
  }
  return shards;
}

/// Tensors in a rank's files.
format::TensorTable table_of(const LogicalCheckpoint& source, const TargetLayout& target,
                             std::span<const ShardNumber> shards) {
  const auto wanted = [&target, shards](size_t i) -> const TargetTensor& {
    return target.tensors[static_cast<size_t>(shards[i].tensor)];
  };
  format::TensorTable table(shards.size(), [&source, shards, wanted](size_t i) {
    const TargetTensor& tensor = wanted(i);
    const TensorSpec& spec = source.tensors[tensor.source].spec;
    return format::TensorTable::Tensor{spec.name, spec.dtype,
                                       tensor.holders->local_shape(shards[i].holder)};
  });
  const bool is_plain_whole = target.is_whole && !target.form.has_chunks;
  if (is_plain_whole || target.not_boxes) return table;
  table.begin_of = [shards, wanted](size_t i) {
    return box_begin(*wanted(i).holders, shards[i].holder);
  };
  return table;
}

format::TensorTable table_of(const TargetLayout& target, std::span<const FileEntry> entries) {
  return {entries.size(), [&target, entries](size_t i) {
            return format::TensorTable::Tensor{(*target.output)[entries[i].output].name,
                                               entries[i].dtype, entries[i].shape};
          }};
}

/// "format" of the metadata of every source file that has one; the default if they differ.
std::string framework_of(const LogicalCheckpoint& source) {
  constexpr size_t kLongestName = 32;
  std::set<std::string_view> known;
  for (const format::Checkpoint& part : source.parts) {
    for (const format::SourceFile& file : part.files) known.insert(file.framework);
  }
  known.erase("");
  const bool is_one = known.size() == 1 && known.begin()->size() <= kLongestName;
  return std::string(is_one ? *known.begin() : format::kDefaultFramework);
}

i64 tensor_bytes(const TensorSpec& spec) {
  return byte_size(spec.dtype, spec.shape).value_or(0);
}

/// Type of the output's elements if they are cast.
std::optional<Dtype> cast_of(const LogicalTensor& tensor) {
  return tensor.cast_from ? std::optional(tensor.spec.dtype) : std::nullopt;
}

/// Local index of a global one, or nullopt.
std::optional<i64> local_index(const index::AxisMap& map, i64 global) {
  for (const index::Piece& piece : map.pieces()) {
    if (global >= piece.global && global < piece.global + piece.size) {
      return piece.local + global - piece.global;
    }
  }
  return std::nullopt;
}

/// Number of leading elements that are contiguous both in a row-major array of this region and in
/// the whole tensor.
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

/// File offset of a region's first element, if a long run begins there on both sides; else
/// kNoOrigin.
i64 origin_of(const LogicalTensor& tensor, const index::Region& wanted) {
  constexpr i64 kLongBytes = 64 << 10;
  if (tensor.cast_from || tensor.unpacked) return format::kNoOrigin;
  const i64 element_bits = bits(tensor.spec.dtype);
  if (leading_run(wanted) * element_bits / 8 < kLongBytes) return format::kNoOrigin;
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
  return format::kNoOrigin;
}

/// Plans the files of one rank, or of the whole checkpoint.
FilePlan plan_files(const TargetLayout& target, i64 rank, const format::TensorTable& table,
                    i64 max_file_size, std::span<const i64> origins, const std::string& framework) {
  format::FileRequest request{table, max_file_size};
  // A chunk does not belong to a rank, and its file has no number of one.
  if (!target.is_whole && !target.form.has_chunks) request.rank = rank;
  request.origins = origins;
  request.framework = framework;
  if (target.engine_files) {
    constexpr i64 kUnlimited = std::numeric_limits<i64>::max();
    if (!target.engine_files->has_parts) request.max_file_size = kUnlimited;
    request.name_of = [&target, rank](size_t part, size_t parts) {
      return layouts::file_name(*target.engine_files, target.mesh, rank, part, parts);
    };
  }
  return writer_of(target).plan(request);
}

i64 shard_origin(const LogicalCheckpoint& source, const TargetLayout& target, ShardNumber shard) {
  const TargetTensor& wanted = target.tensors[static_cast<size_t>(shard.tensor)];
  return origin_of(source.tensors[wanted.source], wanted.holders->region(shard.holder));
}

}  // namespace

OutputPlan plan_output(const LogicalCheckpoint& source, const TargetLayout& target,
                       i64 max_file_size, Extents extents) {
  OutputPlan output;
  output.slots.reserve(target.tensors.size());
  for (const TargetTensor& tensor : target.tensors) output.slots.emplace_back(tensor.ranks.size());
  output.shards_of_rank = shards_by_rank(target);
  if (target.output) output.entries_of_rank = file_entries(source, target);
  const std::string framework = framework_of(source);
  for (size_t r = 0; r < target.ranks.size(); ++r) {
    std::vector<i64> origins;
    if (target.output) {
      const std::span<const FileEntry> entries = output.entries_of_rank[r];
      const format::TensorTable table = table_of(target, entries);
      append(output, plan_files(target, target.ranks[r], table, max_file_size, origins, framework),
             source, target, entries);
      continue;
    }
    const std::span<const ShardNumber> shards = output.shards_of_rank[r];
    if (extents == Extents::kShared) {
      for (const ShardNumber shard : shards) origins.push_back(shard_origin(source, target, shard));
    }
    const format::TensorTable table = table_of(source, target, shards);
    FilePlan plan = plan_files(target, target.ranks[r], table, max_file_size, origins, framework);
    append(output, std::move(plan), shards);
  }
  const bool has_own_names = target.engine_files.has_value();
  output.summary_name =
      writer_of(target).summary_name(target.is_whole && !has_own_names, output.files.size());
  return output;
}

void write_file_frame(const LogicalCheckpoint& source, const TargetLayout& target,
                      const OutputPlan& output, size_t file, const format::FrameSink& write) {
  const auto has_it = [file](const std::vector<int>& files) {
    return std::find(files.begin(), files.end(), static_cast<int>(file)) != files.end();
  };
  const auto rank = std::find_if(output.files_of_rank.begin(), output.files_of_rank.end(), has_it);
  const auto number = static_cast<size_t>(rank - output.files_of_rank.begin());
  writer_of(target).frame(output.files[file],
                          target.output ? table_of(target, output.entries_of_rank[number])
                                        : table_of(source, target, output.shards_of_rank[number]),
                          write);
}

void write_summary(const LogicalCheckpoint& source, const TargetLayout& target,
                   const OutputPlan& output, const format::safetensors::Sink& write) {
  const auto placed = [&](size_t t) {
    const TargetTensor& wanted = target.tensors[t];
    const TensorSpec& spec = source.tensors[wanted.source].spec;
    format::PlacedTensor tensor{spec.name, spec.dtype, spec.shape, {}};
    for (int h = 0; h < wanted.holders->size(); ++h) {
      const exec::Slot& slot = output.slots[t][static_cast<size_t>(h)];
      tensor.parts.push_back(
          {box_begin(*wanted.holders, h), wanted.holders->local_shape(h), slot.file, slot.offset});
    }
    return tensor;
  };
  writer_of(target).summarize({output.files, target.tensors.size(), placed}, write);
}

bool is_shifted(const LogicalCheckpoint& source, const TargetTensor& tensor) {
  return !tensor.shifts.empty() || !source.tensors[tensor.source].shifts.empty();
}

std::vector<exec::TensorMove> plan_moves(const LogicalCheckpoint& source,
                                         const TargetLayout& target, const OutputPlan& output) {
  std::vector<exec::TensorMove> moves;
  moves.reserve(target.tensors.size());
  for (size_t t = 0; t < target.tensors.size(); ++t) {
    const LogicalTensor& from = source.tensors[target.tensors[t].source];
    moves.push_back({from.spec.name,
                     from.stored_dtype(),
                     from.spec.shape,
                     from.side,
                     {target.tensors[t].holders, output.slots[t]},
                     from.digest,
                     cast_of(from),
                     from.unpacked});
  }
  return moves;
}

std::vector<exec::TensorMove> plan_fills(const LogicalCheckpoint& source,
                                         const TargetLayout& target, const OutputPlan& output,
                                         size_t tensor) {
  std::vector<exec::TensorMove> moves;
  if (!target.tensors[tensor].fills) return moves;
  const LogicalTensor& from = source.tensors[target.tensors[tensor].source];
  for (const Fill& fill : *target.tensors[tensor].fills) {
    std::vector<exec::Slot> slots;
    for (const size_t holder : fill.of) slots.push_back(output.slots[tensor][holder]);
    moves.push_back({from.spec.name,
                     from.stored_dtype(),
                     from.spec.shape,
                     from.side,
                     {fill.holders, std::move(slots)},
                     std::nullopt,
                     cast_of(from),
                     from.unpacked});
  }
  return moves;
}

namespace {

void add_alterations(const TargetTensor& tensor, const std::string& name, TransformPlan& plan) {
  for (const std::string& what : tensor.cut->transforms) {
    const auto found = std::find_if(plan.alterations.begin(), plan.alterations.end(),
                                    [&](const Alteration& known) { return known.what == what; });
    if (found == plan.alterations.end()) {
      plan.alterations.push_back({what, name, 1});
    } else {
      ++found->tensors;
    }
  }
}

i64 stored_bytes(const LogicalTensor& tensor) {
  if (tensor.unpacked) return tensor.unpacked->stored_bytes();
  return byte_size(tensor.stored_dtype(), tensor.spec.shape).value_or(0);
}

/// Bytes of a tensor's shards, and the part of them that is padding.
struct WrittenBytes {
  i64 all = 0;
  i64 padding = 0;
};
WrittenBytes written_bytes(const index::HolderSet& holders, Dtype dtype) {
  WrittenBytes written;
  for (int h = 0; h < holders.size(); ++h) {
    const i64 bytes = exec::holder_bytes(holders, h, dtype);
    written.all += bytes;
    written.padding += bytes - image_size(holders.region(h)) * bits(dtype) / 8;
  }
  return written;
}

/// Counts the constants in the files; those after the first of an output tensor are copies.
void count_constants(const TargetLayout& target, const OutputPlan& output, TransformPlan& plan) {
  std::set<size_t> known;
  for (const ConstantPlace& place : output.constants) {
    const mapping::StoredConstant& constant = *(*target.output)[place.output].constant;
    const i64 bytes = byte_size(constant.dtype, constant.shape).value_or(0);
    plan.bytes_out += bytes;
    if (!known.insert(place.output).second) plan.replicated_bytes += bytes;
  }
}

}  // namespace

TransformPlan summarize(const LogicalCheckpoint& source, const TargetLayout& target,
                        const OutputPlan& output) {
  TransformPlan plan;
  plan.tensors = static_cast<i64>(target.tensors.size());
  plan.dropped = static_cast<i64>(target.dropped.size());
  plan.mapping = target.mapping_names;
  plan.mesh = target.is_whole ? "" : to_string(target.mesh);
  plan.ranks = target.is_whole ? 0 : static_cast<i64>(target.ranks.size());
  plan.has_all_ranks = std::ssize(target.ranks) == target.mesh.size();
  plan.files = static_cast<i64>(output.files.size());
  plan.uneven = target.uneven;
  plan.not_boxes = target.not_boxes;
  std::map<std::pair<const index::HolderSet*, Dtype>, WrittenBytes> of_layout;
  for (const TargetTensor& tensor : target.tensors) {
    const TensorSpec& spec = source.tensors[tensor.source].spec;
    ++(tensor.is_sharded ? plan.split : plan.replicated);
    plan.bytes_in += stored_bytes(source.tensors[tensor.source]);
    const auto [found, is_new] = of_layout.try_emplace({tensor.holders.get(), spec.dtype});
    if (is_new) found->second = written_bytes(*tensor.holders, spec.dtype);
    const auto& [written, padding] = found->second;
    add_alterations(tensor, spec.name, plan);
    plan.bytes_out += written;
    plan.replicated_bytes += std::max<i64>(0, written - padding - tensor_bytes(spec));
    plan.padding_bytes += padding;
  }
  count_constants(target, output, plan);
  return plan;
}

}  // namespace shardtool::api
