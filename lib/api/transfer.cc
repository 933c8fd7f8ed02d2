#include "shardtool/api/transfer.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>

#include "shardtool/api/output_plan.h"
#include "shardtool/api/replicas.h"
#include "shardtool/api/resume.h"
#include "shardtool/base/error.h"
#include "shardtool/base/text.h"
#include "shardtool/exec/copy.h"
#include "shardtool/exec/fill.h"
#include "shardtool/exec/range_hash.h"
#include "shardtool/io/output_folder.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifestName = "manifest.json";
constexpr const char* kIndexName = "model.safetensors.index.json";

/// Whether `inner` is `outer` or lies in it; both canonical.
bool is_within(const fs::path& inner, const fs::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

void check_apart(const LogicalCheckpoint& source, const std::string& output) {
  const fs::path to = fs::weakly_canonical(fs::absolute(output));
  for (const checkpoint::Checkpoint& part : source.parts) {
    // Beside a single file is fine; in a checkpoint's folder the output would belong to it.
    const bool is_file = fs::is_regular_file(part.path);
    const fs::path from = fs::weakly_canonical(fs::absolute(is_file ? part.path : part.folder()));
    if (!is_within(from, to) && !is_within(to, from)) continue;
    throw Error(
        ErrorCode::kOutputAliasesInput,
        fmt::format("the output {} and the input {} lie in one another", output, part.path))
        .help("write to a folder beside the checkpoint");
  }
}

/// --force replaces an output of ours, never a folder that merely has the name.
void check_replaceable(const std::string& output) {
  std::error_code unreadable;
  const bool has_content =
      fs::is_directory(output, unreadable) && !fs::is_empty(output, unreadable);
  if (!has_content || fs::exists(fs::path(output) / kManifestName, unreadable)) return;
  throw Error(ErrorCode::kOutputExists,
              "the folder is not an output of shardtool: it has no manifest.json")
      .at({output, 0, 0, {}})
      .help(
          "--force only replaces earlier outputs; choose another folder, or delete this one "
          "yourself");
}

void check_space(const OutputPlan& plan, const io::OutputFolder& folder) {
  if (folder.continues()) return;  // the files have their space
  i64 needed = 0;
  for (const auto& file : plan.files) needed += file.size;
  if (needed <= folder.bytes_free()) return;
  throw Error(ErrorCode::kNoSpace,
              fmt::format("the output needs {}, its file system has {} free", format_bytes(needed),
                          format_bytes(folder.bytes_free())))
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
    io::File& file = folder.create_or_open(planned.name);
    io::allocate(file, planned.size);
    if (folder.continues()) io::set_size(file, planned.size);
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

i64 copy_side_files(const LogicalCheckpoint& source, const OutputPlan& plan,
                    io::OutputFolder& folder) {
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
      throw Error(ErrorCode::kTied,
                  fmt::format("'{}' and '{}' are declared tied, but their bytes differ", group[0],
                              group[i]))
          .tensor(group[i])
          .help("remove the pair from \"tied\" when the two are separate weights");
    }
  }
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

/// Streams what is plain data in the order of the source, and copies shifted values one by one.
std::vector<exec::CopiedTensor> copy_all(const LogicalCheckpoint& source,
                                         const TargetLayout& target,
                                         std::span<const exec::TensorMove> moves,
                                         std::span<const exec::SourceFile> sources,
                                         std::span<const exec::TargetFile> targets,
                                         const exec::StreamOptions& options,
                                         const TakenUp& taken_up, exec::Journal& journal) {
  std::vector<size_t> order;
  std::vector<exec::TensorMove> ordered;
  std::vector<exec::CopiedTensor> copied(moves.size());
  for (const size_t i : source_order(moves)) {
    const TargetTensor& tensor = target.tensors[i];
    if (const auto found = taken_up.tensors.find(i); found != taken_up.tensors.end()) {
      copied[i] = found->second;
      continue;
    }
    if (is_shifted(source, tensor)) {
      copied[i] = exec::copy_shifted(
          {moves[i], source.tensors[tensor.source].shifts, tensor.shifts}, sources, targets);
      continue;
    }
    order.push_back(i);
    ordered.push_back(moves[i]);
  }
  std::vector<exec::CopiedTensor> done = exec::copy(
      ordered, sources, targets, options, [&](size_t i, const exec::CopiedTensor& tensor) {
        // Padding that repeats elements is filled afterwards: such a tensor is not finished yet.
        if (target.tensors[order[i]].fills) return;
        const i64 bytes = byte_size(ordered[i].dtype, ordered[i].shape).value_or(0);
        journal.finished(order[i], tensor, bytes);
      });
  for (size_t i = 0; i < order.size(); ++i) copied[order[i]] = std::move(done[i]);
  return copied;
}

/// Fills padding with what it repeats, and hashes those shards again.
void fill_padding(const LogicalCheckpoint& source, const TargetLayout& target,
                  const OutputPlan& plan, std::span<const exec::SourceFile> sources,
                  std::span<const exec::TargetFile> targets,
                  std::vector<exec::CopiedTensor>& copied) {
  const std::vector<exec::TensorMove> fills = plan_fills(source, target, plan);
  if (fills.empty()) return;
  exec::fill(fills, sources, targets);
  for (size_t t = 0; t < target.tensors.size(); ++t) {
    const TargetTensor& tensor = target.tensors[t];
    if (!tensor.fills) continue;
    const Dtype dtype = source.tensors[tensor.source].spec.dtype;
    for (int h = 0; h < tensor.holders->size(); ++h) {
      const exec::Slot& slot = plan.slots[t][static_cast<size_t>(h)];
      const i64 bytes = byte_size(dtype, local_shape(tensor.holders->region(h))).value_or(0);
      copied[t].xxh3[static_cast<size_t>(h)] =
          exec::hash_range(targets[static_cast<size_t>(slot.file)].path(), slot.offset, bytes);
    }
  }
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

namespace {

/// Everything after the folder has been claimed: fills it and puts it in place.
void write_output(const LogicalCheckpoint& source, const TargetLayout& target,
                  const OutputPlan& plan, const WriteOptions& options, const RunIdentity& run,
                  std::span<const exec::TensorMove> moves,
                  std::span<const exec::SourceFile> sources, io::OutputFolder& folder,
                  TransformReport& report) {
  const exec::StreamOptions stream = stream_options(options);
  const std::vector<exec::TargetFile> targets = create_files(plan, folder);
  exec::Journal journal(folder.journal_path(), run.text(), {.bytes = options.journal_bytes},
                        [&folder] { folder.sync(); });
  TakenUp taken_up;
  try {
    if (folder.continues()) {
      taken_up = take_up(journal, source, target, plan, targets, stream);
      report.resumed = {std::ssize(taken_up.tensors), taken_up.bytes, taken_up.damaged};
    }
    auto copied = copy_all(source, target, moves, sources, targets, stream, taken_up, journal);
    fill_padding(source, target, plan, sources, targets, copied);
    check_tied(target, moves, copied);
    if (!plan.index_text.empty()) write_text(folder, kIndexName, plan.index_text);
    const i64 side_files = options.copy_side_files ? copy_side_files(source, plan, folder) : 0;
    write_text(folder, kManifestName, to_json(make_manifest(source, target, plan, copied)));
    folder.publish();
    report.written.emplace().files = static_cast<i64>(plan.files.size()) + side_files;
  } catch (Error& error) {
    keep_for_resume(error, journal, folder, taken_up, options.worth_keeping);
    throw;
  }
}

}  // namespace

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
  if (options.resume && is_complete(options.output, source, target, plan)) {
    report.was_complete = true;
    return report;
  }
  if (options.force) check_replaceable(options.output);
  const std::vector<exec::SourceFile> sources = open_sources(source);
  const RunIdentity run = run_identity(source, target, plan);
  io::OutputClaim claim(options.output,
                        options.force ? io::Existing::kReplace : io::Existing::kRefuse);
  if (options.resume) check_same_run(claim, run);
  io::OutputFolder folder(std::move(claim), run.id(),
                          options.resume ? io::Leftover::kContinue : io::Leftover::kDiscard);
  check_space(plan, folder);
  if (compare_replicas) {
    report.replicas_compared = api::compare_replicas(source, sources, stream_options(options));
  }
  write_output(source, target, plan, options, run, moves, sources, folder, report);

  TransformWritten& written = *report.written;
  for (const auto& file : plan.files) written.bytes += file.size;
  written.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  written.bytes_per_second = static_cast<double>(written.bytes) / std::max(written.seconds, 1e-9);
  written.peak_rss_bytes = peak_rss_bytes();
  return report;
}

}  // namespace shardtool::api
