#include "shardtool/api/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "shardtool/base/error.h"
#include "shardtool/base/text.h"
#include "shardtool/exec/read_back.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;

/// What a manifest says before the data is known.
std::string text_without_data(checkpoint::Manifest manifest) {
  for (checkpoint::TensorRecord& tensor : manifest.tensors) {
    tensor.digest.clear();
    for (checkpoint::ShardRecord& shard : tensor.shards) shard.xxh3.clear();
  }
  return to_json(manifest);
}

std::string planned_text(const LogicalCheckpoint& source, const TargetLayout& target,
                         const OutputPlan& plan) {
  std::vector<exec::CopiedTensor> unknown;
  for (const TargetTensor& tensor : target.tensors) {
    unknown.emplace_back().xxh3.resize(tensor.ranks.size());
  }
  return text_without_data(make_manifest(source, target, plan, unknown));
}

/// Whether another try could end otherwise with what is there.
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

std::string what_changed(const RunIdentity& then, const RunIdentity& now) {
  if (then.source == now.source) return "the mapping, the mesh or an option";
  if (then.target == now.target) return "the source";
  return "the source and the layout";
}

}  // namespace

bool is_complete(const std::string& output, const LogicalCheckpoint& source,
                 const TargetLayout& target, const OutputPlan& plan) {
  const std::string path = output + "/manifest.json";
  std::error_code absent;
  if (!fs::is_regular_file(path, absent)) return false;
  for (const checkpoint::PlannedFile& file : plan.files) {
    const auto size = fs::file_size(output + "/" + file.name, absent);
    if (absent || static_cast<i64>(size) != file.size) return false;
  }
  const std::string text = io::read_text(path, static_cast<i64>(fs::file_size(path)));
  return text_without_data(checkpoint::parse_manifest(text, path)) ==
         planned_text(source, target, plan);
}

void check_same_run(const io::OutputClaim& claim, const RunIdentity& run) {
  for (const std::string& id : claim.leftovers()) {
    if (id == run.id()) continue;
    const auto text = exec::journal_run(claim.journal_of(id));
    if (!text) continue;
    throw Error(ErrorCode::kOtherRun,
                fmt::format("the interrupted run cannot be resumed: {} changed since",
                            what_changed(parse_run_identity(*text), run)))
        .at({claim.folder_of(id), 0, 0, {}})
        .help("restore what changed, or start anew without --resume: that deletes this folder");
  }
}

TakenUp take_up(exec::Journal& journal, const LogicalCheckpoint& source, const TargetLayout& target,
                const OutputPlan& plan, std::span<const exec::TargetFile> files,
                const exec::StreamOptions& options) {
  TakenUp taken{journal.take_up()};
  std::vector<exec::SourceFile> written;
  for (const exec::TargetFile& file : files) written.emplace_back(file.path());
  std::vector<exec::WrittenRange> ranges;
  std::vector<size_t> tensor_of;
  std::erase_if(taken.tensors, [&](const auto& entry) {
    const auto& [t, copied] = entry;
    if (t >= plan.slots.size() || copied.xxh3.size() != plan.slots[t].size()) return true;
    const TargetTensor& tensor = target.tensors[t];
    for (size_t h = 0; h < plan.slots[t].size(); ++h) {
      const Shape shape = local_shape(tensor.holders->region(static_cast<int>(h)));
      const i64 bytes = byte_size(source.tensors[tensor.source].spec.dtype, shape).value_or(0);
      ranges.push_back({plan.slots[t][h].file, plan.slots[t][h].offset, bytes, copied.xxh3[h]});
      tensor_of.push_back(t);
    }
    return false;
  });
  const std::vector<bool> intact = exec::read_back(ranges, written, options);
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (!intact[i]) taken.damaged += static_cast<i64>(taken.tensors.erase(tensor_of[i]));
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (taken.tensors.contains(tensor_of[i])) taken.bytes += ranges[i].bytes;
  }
  return taken;
}

void keep_for_resume(Error& error, exec::Journal& journal, io::OutputFolder& folder,
                     const TakenUp& taken_up, i64 worth_keeping) noexcept {
  if (!leaves_data_alone(error.code())) return folder.give_up();
  try {
    journal.commit();
  } catch (const std::exception&) {
    // What was committed before stands.
  }
  const i64 bytes = journal.bytes_committed() + taken_up.bytes;
  // What was taken up may not be counted yet.
  if (!folder.continues() && bytes < std::max<i64>(worth_keeping, 1)) return folder.give_up();
  folder.keep();
  const std::string what = bytes == 0 ? "what was finished" : format_bytes(bytes);
  error.resumable().note("kept", fmt::format("{}, in {}", what, folder.working_path()));
}

}  // namespace shardtool::api
