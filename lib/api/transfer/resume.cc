#include "lib/api/transfer/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/exec/files/read_back.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

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
    if (!intact[i] && taken.tensors.erase(tensor_of[i]) > 0) taken.damaged.insert(tensor_of[i]);
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (taken.tensors.contains(tensor_of[i])) taken.bytes += ranges[i].bytes;
  }
  return taken;
}

}  // namespace

MovedTensors move_tensors(const WriteRun& run, const std::vector<bool>& is_mine,
                          std::span<const exec::SourceFile> sources, OutputState state,
                          const exec::Resources& resources) {
  const auto& files = state.files;
  MovedTensors moved;
  moved.taken_up = take_up(run, is_mine, std::move(state.finished), files, resources);
  const exec::FinishedTensors& finished = moved.taken_up.tensors;
  for (size_t t = 0; t < run.moves.size(); ++t) {
    const bool is_unknown = state.has_old_padding || moved.taken_up.damaged.contains(t);
    if (is_mine[t] && !finished.contains(t) && is_unknown) clear_padding(run, t, files);
  }
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
