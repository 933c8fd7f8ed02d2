#include "lib/api/transfer/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/xxh3/xxh3.h"
#include "lib/api/transfer/output_manifest.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/exec/files/read_back.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

/// A hash of a manifest's text.
kernels::Hash128 text_hash(const format::Manifest& head, size_t tensors,
                           const std::function<format::TensorRecord(size_t)>& record) {
  kernels::Xxh3 hash;
  write_json(head, tensors, record,
             [&](std::string_view text) { hash.update(std::as_bytes(std::span(text))); });
  return hash.value();
}

void clear_data(format::TensorRecord& record) {
  record.digest.reset();
  record.is_unread = false;
  for (format::CastRecord& cast : record.casts) cast.digest.reset();
  if (record.dequantized) {
    for (format::StoredRecord& stored : record.dequantized->from) stored.digest.reset();
  }
  for (format::ShardRecord& shard : record.shards) shard.xxh3.reset();
}

/// Hash of a manifest without the fields that depend on the data.
kernels::Hash128 hash_without_data(const format::Manifest& manifest) {
  format::Manifest head = manifest;
  head.tensors.clear();
  for (format::FileRecord& file : head.files) file.sha256.clear();
  return text_hash(head, manifest.tensors.size(), [&](size_t t) {
    format::TensorRecord record = manifest.tensors[t];
    clear_data(record);
    return record;
  });
}

kernels::Hash128 planned_hash(const LogicalCheckpoint& source, const TargetLayout& target,
                              const OutputPlan& plan) {
  return text_hash(manifest_head(source, target, plan), target.tensors.size(), [&](size_t t) {
    format::TensorRecord record = tensor_record(source, target, plan, t, {});
    clear_data(record);
    return record;
  });
}

/// Verifies the tensors that `is_mine` selects and that are listed as `finished`, and returns those
/// whose bytes all read back as written. Throws the errors of reading, and kInterrupted.
TakenUp take_up(const WriteRun& run, const std::vector<bool>& is_mine,
                exec::FinishedTensors finished, std::span<const exec::TargetFile> files,
                const exec::Resources& resources) {
  TakenUp taken;
  taken.tensors = std::move(finished);
  std::erase_if(taken.tensors, [&](const auto& entry) {
    const auto& [t, copied] = entry;
    return t >= is_mine.size() || !is_mine[t] || !is_complete(run, t, copied);
  });
  std::vector<exec::WrittenRange> ranges;
  std::vector<size_t> tensor_of;
  for (const auto& [t, copied] : taken.tensors) {
    add_ranges(run, t, copied.xxh3, ranges);
    tensor_of.resize(ranges.size(), t);
  }
  if (ranges.empty()) return taken;
  std::vector<exec::SourceFile> written;
  for (const exec::TargetFile& file : files) written.emplace_back(file.path());
  const std::vector<bool> intact = exec::read_back(ranges, written, resources);
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (!intact[i] && taken.tensors.erase(tensor_of[i]) > 0) ++taken.damaged;
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (taken.tensors.contains(tensor_of[i])) taken.bytes += ranges[i].bytes;
  }
  return taken;
}

}  // namespace

std::optional<format::Manifest> complete_output(const std::string& output,
                                                const LogicalCheckpoint& source,
                                                const TargetLayout& target, const OutputPlan& plan,
                                                bool sha256) {
  const std::string path = output + "/" + format::kManifestName;
  store::look_again(output);
  const auto bytes = store::size_of(path);
  if (!bytes || !store::is_file(path)) return std::nullopt;
  for (const format::PlannedFile& file : plan.files) {
    if (store::size_of(output + "/" + file.name) != file.size) return std::nullopt;
  }
  const std::string text = store::read_source_text(path, *bytes);
  format::Manifest manifest = format::parse_manifest(text, path);
  const auto lacks_hash = [](const format::FileRecord& file) { return file.sha256.empty(); };
  const bool lacks_hashes = std::any_of(manifest.files.begin(), manifest.files.end(), lacks_hash);
  if (sha256 && lacks_hashes) return std::nullopt;
  if (hash_without_data(manifest) != planned_hash(source, target, plan)) return std::nullopt;
  return manifest;
}

MovedTensors move_tensors(const WriteRun& run, const std::vector<bool>& is_mine,
                          std::span<const exec::SourceFile> sources, OutputState state,
                          const exec::Resources& resources) {
  const auto& files = state.files;
  MovedTensors moved;
  moved.taken_up = take_up(run, is_mine, std::move(state.finished), files, resources);
  const exec::FinishedTensors& finished = moved.taken_up.tensors;
  if (state.has_old_padding) clear_padded_shards(run, is_mine, finished, files);
  moved.all = copy_tensors(run, is_mine, finished, sources, files, resources,
                           [&](size_t t, const exec::CopiedTensor& copied, i64 bytes) {
                             state.journal.finished(t, copied, bytes);
                           });
  moved.all.insert(finished.begin(), finished.end());
  return moved;
}

exec::FinishedTensors finished_tensors(const store::OutputPlace& place,
                                       const RunIdentity& identity) {
  exec::FinishedTensors all;
  for (const std::string& journal : store::hidden_journals(place, identity.id())) {
    all.merge(exec::read_journal(journal, identity.text()));
  }
  return all;
}

void commit_finished(exec::Journal& journal) noexcept {
  try {
    journal.commit();
  } catch (const std::exception&) {
    // Earlier commits stay valid.
  }
}

bool leaves_data_alone(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInputChanged:
    case ErrorCode::kDataMismatch:
    case ErrorCode::kCoverage:
    case ErrorCode::kTied:
    case ErrorCode::kInternal:
      return false;
    default:
      return true;
  }
}

void keep_for_resume(Error& error, const WriteRun& run, const RunIdentity& identity,
                     store::OutputFolder& folder, i64 worth_keeping) noexcept {
  if (!leaves_data_alone(error.code())) return folder.give_up();
  std::optional<i64> bytes = 0;
  try {
    for (const auto& [t, copied] : finished_tensors(folder.claim().place(), identity)) {
      *bytes += byte_size(run.moves[t].dtype, run.moves[t].shape).value_or(0);
    }
  } catch (const std::exception&) {
    // Data that cannot be read now may be readable for the run that resumes.
    bytes.reset();
  }
  if (bytes && *bytes < std::max<i64>(worth_keeping, 1)) return folder.give_up();
  folder.keep();
  const std::string amount = bytes ? format_bytes(*bytes) : "an unknown amount";
  error.resumable().note("kept", fmt::format("{}, in {}", amount, folder.working_path()));
}

}  // namespace shardtool::api
