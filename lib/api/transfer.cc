#include "shardtool/api/transfer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>

#include <sys/resource.h>

#include <fmt/format.h>

#include "shardtool/api/replicas.h"
#include "shardtool/base/error.h"
#include "shardtool/base/text.h"
#include "shardtool/checkpoint/shard_files.h"
#include "shardtool/exec/copy.h"
#include "shardtool/io/output_folder.h"
#include "shardtool/kernels/xxh3/xxh3.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;
using checkpoint::FilePlan;
using checkpoint::Manifest;

constexpr const char* kManifestName = "manifest.json";
constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kToolVersion = SHARDTOOL_VERSION;

/// The files of a run and the slot of every holder in them.
struct OutputPlan {
  std::vector<checkpoint::PlannedFile> files;
  std::vector<std::vector<exec::Slot>> slots;  ///< per target tensor, per holder
  std::vector<std::vector<int>> files_of_rank; ///< in the order of TargetLayout::ranks
  std::string index_text;                      ///< of a whole checkpoint in several files
};

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

std::map<i64, RankShards> shards_by_rank(const LogicalCheckpoint& source, const TargetLayout& target) {
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

OutputPlan plan_output(const LogicalCheckpoint& source, const TargetLayout& target, i64 max_file_size) {
  OutputPlan output;
  for (const TargetTensor& tensor : target.tensors) output.slots.emplace_back(tensor.ranks.size());
  for (const auto& [rank, shards] : shards_by_rank(source, target)) {
    FilePlan plan = target.is_whole ? checkpoint::plan_whole_files(shards.specs, max_file_size)
                                    : checkpoint::plan_rank_files(rank, shards.specs, max_file_size);
    if (target.is_whole) output.index_text = index_text(plan, shards.specs).value_or("");
    const std::vector<exec::Slot> slots = append(output, std::move(plan));
    for (size_t i = 0; i < slots.size(); ++i) {
      const auto [tensor, holder] = shards.holders[i];
      output.slots[tensor][holder] = slots[i];
    }
  }
  return output;
}

std::optional<std::uint64_t> parse_digest(const std::string& hex) {
  if (hex.empty()) return std::nullopt;
  return std::strtoull(hex.c_str(), nullptr, 16);
}

/// One move per target tensor that some chosen rank wants.
std::vector<exec::TensorMove> plan_moves(const LogicalCheckpoint& source, const TargetLayout& target,
                                         const OutputPlan& output) {
  std::vector<exec::TensorMove> moves;
  for (size_t t = 0; t < target.tensors.size(); ++t) {
    const LogicalTensor& from = source.tensors[target.tensors[t].source];
    moves.push_back({from.spec.name, from.spec.dtype, from.spec.shape, from.side,
                     {target.tensors[t].holders, output.slots[t]}, parse_digest(from.digest)});
  }
  return moves;
}

i64 tensor_bytes(const TensorSpec& spec) { return byte_size(spec.dtype, spec.shape).value_or(0); }

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
    for (int h = 0; h < tensor.holders->size(); ++h) {
      written += byte_size(spec.dtype, local_shape(tensor.holders->region(h))).value_or(0);
    }
    plan.bytes_out += written;
    plan.replicated_bytes += std::max<i64>(0, written - tensor_bytes(spec));
  }
  return plan;
}

/// Whether `inner` is `outer` or lies in it; both canonical.
bool is_within(const fs::path& inner, const fs::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

void check_apart(const LogicalCheckpoint& source, const std::string& output) {
  const fs::path to = fs::weakly_canonical(fs::absolute(output));
  for (const checkpoint::Checkpoint& part : source.parts) {
    const fs::path from = fs::weakly_canonical(fs::absolute(part.folder()));
    if (!is_within(from, to) && !is_within(to, from)) continue;
    throw Error(ErrorCode::kOutputAliasesInput,
                fmt::format("the output {} and the input {} lie in one another", output, part.folder()))
        .help("write to a folder beside the checkpoint");
  }
}

void check_space(const OutputPlan& plan, const io::OutputFolder& folder) {
  i64 needed = 0;
  for (const auto& file : plan.files) needed += file.size;
  if (needed <= folder.bytes_free()) return;
  throw Error(ErrorCode::kNoSpace, fmt::format("the output needs {}, its file system has {} free",
                                               format_bytes(needed), format_bytes(folder.bytes_free())))
      .at({folder.final_path(), 0, 0, {}})
      .help("write fewer --ranks at a time, or to another file system");
}

std::vector<exec::SourceFile> open_sources(const LogicalCheckpoint& source) {
  std::vector<exec::SourceFile> files;
  for (const std::string& path : source.file_paths) files.emplace_back(path);
  return files;
}

/// Creates every file in its final size, with its header.
std::vector<exec::TargetFile> create_files(const OutputPlan& plan, io::OutputFolder& folder) {
  std::vector<exec::TargetFile> targets;
  for (const auto& planned : plan.files) {
    io::File& file = folder.create(planned.name);
    io::allocate(file, planned.size);
    targets.emplace_back(file);
    targets.back().write(std::as_bytes(std::span(planned.header)), 0);
  }
  return targets;
}

void copy_side_file(const std::string& from, io::File& to) {
  const io::File file = io::open_read(from);
  const i64 size = identity(file).size;
  std::vector<std::byte> buffer(1 << 20);
  for (i64 at = 0; at < size; at += static_cast<i64>(buffer.size())) {
    const auto part = std::span(buffer).first(
        static_cast<size_t>(std::min<i64>(size - at, static_cast<i64>(buffer.size()))));
    io::read_exact(file, part, at);
    io::write_exact(to, part, at);
  }
}

void write_text(io::OutputFolder& folder, const std::string& name, const std::string& text) {
  io::write_exact(folder.create(name), std::as_bytes(std::span(text)), 0);
}

i64 copy_side_files(const LogicalCheckpoint& source, const OutputPlan& plan, io::OutputFolder& folder) {
  const checkpoint::Checkpoint& first = source.parts.front();
  i64 copied = 0;
  for (const std::string& name : first.side_files) {
    const bool is_ours = name == kManifestName || name == kIndexName ||
                         std::any_of(plan.files.begin(), plan.files.end(),
                                     [&](const auto& file) { return file.name == name; });
    if (is_ours) continue;
    copy_side_file(first.folder() + "/" + name, folder.create(name));
    ++copied;
  }
  return copied;
}

/// Tensors that are declared tied must have come out equal.
void check_tied(const TargetLayout& target, std::span<const exec::TensorMove> moves,
                std::span<const exec::CopiedTensor> copied) {
  std::map<std::string_view, size_t> number;
  for (size_t i = 0; i < moves.size(); ++i) number[moves[i].name] = i;
  for (const auto& group : target.tied) {
    for (size_t i = 1; i < group.size(); ++i) {
      const auto a = number.find(group[0]);
      const auto b = number.find(group[i]);
      if (a == number.end() || b == number.end()) continue;
      const auto& first = copied[a->second];
      const auto& other = copied[b->second];
      if (first.digest == other.digest || !first.is_whole || !other.is_whole) continue;
      throw Error(ErrorCode::kTied, fmt::format("'{}' and '{}' are declared tied, but their bytes differ",
                                                group[0], group[i]))
          .tensor(group[i])
          .help("remove the pair from \"tied\" when the two are separate weights");
    }
  }
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
                                                   const std::vector<exec::Slot>& slots, Dtype dtype,
                                                   const exec::CopiedTensor& copied) {
  std::vector<checkpoint::ShardRecord> records;
  for (size_t h = 0; h < tensor.ranks.size(); ++h) {
    index::Region region = tensor.holders->region(static_cast<int>(h));
    const i64 bytes = byte_size(dtype, local_shape(region)).value_or(0);
    records.push_back({tensor.ranks[h], slots[h].file, slots[h].offset, bytes, std::move(region),
                       copied.xxh3[h]});
  }
  return records;
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
    manifest.tensors.push_back(
        {spec.name, spec.dtype, spec.shape, tensor.rule, tensor.axes,
         copied[t].is_whole ? fmt::format("{:016x}", copied[t].digest) : "", tensor.transforms,
         tensor.bias, shard_records(tensor, plan.slots[t], spec.dtype, copied[t])});
  }
  return manifest;
}

i64 peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<i64>(usage.ru_maxrss) * 1024;
}

/// Chunks are read in the order of the source, whatever the order of the names.
std::vector<size_t> source_order(std::span<const exec::TensorMove> moves) {
  std::vector<size_t> order(moves.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto at = [&](size_t i) {
    const exec::Slot& slot = moves[i].from.slots.front();
    return std::pair(slot.file, slot.offset);
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return at(a) < at(b); });
  return order;
}

std::vector<exec::CopiedTensor> copy_in_source_order(std::span<const exec::TensorMove> moves,
                                                     std::span<const exec::SourceFile> sources,
                                                     std::span<const exec::TargetFile> targets,
                                                     const exec::StreamOptions& options) {
  const std::vector<size_t> order = source_order(moves);
  std::vector<exec::TensorMove> ordered;
  for (const size_t i : order) ordered.push_back(moves[i]);
  std::vector<exec::CopiedTensor> done = exec::copy(ordered, sources, targets, options);
  std::vector<exec::CopiedTensor> copied(moves.size());
  for (size_t i = 0; i < order.size(); ++i) copied[order[i]] = std::move(done[i]);
  return copied;
}

void sort_by_name(const LogicalCheckpoint& source, TargetLayout& target) {
  std::sort(target.tensors.begin(), target.tensors.end(), [&](const auto& a, const auto& b) {
    return source.tensors[a.source].spec.name < source.tensors[b.source].spec.name;
  });
  std::erase_if(target.tensors, [](const TargetTensor& tensor) { return tensor.ranks.empty(); });
}

}  // namespace

exec::StreamOptions stream_options(const WriteOptions& options) {
  exec::StreamOptions stream;
  stream.max_memory = options.max_memory;
  stream.threads = options.threads;
  stream.cancel = options.cancel;
  if (options.on_progress) {
    stream.on_progress = [report = options.on_progress](const exec::Progress& p) {
      report({p.bytes_done, p.bytes_total, p.item});
    };
  }
  return stream;
}

TransformReport transfer(const LogicalCheckpoint& source, TargetLayout target,
                         const WriteOptions& options, bool compare_replicas) {
  const auto start = std::chrono::steady_clock::now();
  sort_by_name(source, target);
  const OutputPlan plan = plan_output(source, target, options.max_file_size);
  const std::vector<exec::TensorMove> moves = plan_moves(source, target, plan);
  TransformReport report;
  report.plan = summarize(source, target, plan);
  report.output = options.output;
  report.warnings = source.warnings();
  report.warnings.insert(report.warnings.end(), target.warnings.begin(), target.warnings.end());
  exec::check_moves(moves);
  if (options.dry_run) return report;

  check_apart(source, options.output);
  const std::vector<exec::SourceFile> sources = open_sources(source);
  io::OutputFolder folder(options.output, options.force ? io::Existing::kReplace : io::Existing::kRefuse);
  check_space(plan, folder);
  const exec::StreamOptions stream = stream_options(options);
  if (compare_replicas) report.replicas_compared = api::compare_replicas(source, sources, stream);
  const std::vector<exec::TargetFile> targets = create_files(plan, folder);
  const auto copied = copy_in_source_order(moves, sources, targets, stream);
  check_tied(target, moves, copied);
  if (!plan.index_text.empty()) write_text(folder, kIndexName, plan.index_text);
  const i64 side_files = options.copy_side_files ? copy_side_files(source, plan, folder) : 0;
  write_text(folder, kManifestName, to_json(make_manifest(source, target, plan, copied)));
  folder.publish();

  TransformWritten written;
  for (const auto& file : plan.files) written.bytes += file.size;
  written.files = static_cast<i64>(plan.files.size()) + side_files;
  written.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  written.bytes_per_second = static_cast<double>(written.bytes) / std::max(written.seconds, 1e-9);
  written.peak_rss_bytes = peak_rss_bytes();
  report.written = written;
  return report;
}

}  // namespace shardtool::api
