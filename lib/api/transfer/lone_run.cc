#include "lib/api/transfer/lone_run.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "lib/api/transfer/output_checks.h"
#include "lib/api/transfer/resume.h"
#include "lib/api/transfer/run_identity.h"
#include "lib/api/transfer/run_note.h"
#include "lib/api/transfer/sources/replicas.h"
#include "lib/api/verify.h"
#include "lib/base/error.h"
#include "lib/store/local/output_folder.h"

namespace shardtool::api {
namespace {

void count_unpacked(std::span<const exec::TensorMove> moves,
                    std::span<const exec::CopiedTensor> copied, TransformDequantize& report) {
  report.counts.emplace();
  for (size_t t = 0; t < copied.size(); ++t) {
    if (!copied[t].computed) continue;
    *report.counts += copied[t].computed->counts;
    const bool overflows = copied[t].computed->counts.overflowed > 0;
    if (overflows && report.overflow_example.empty()) report.overflow_example = moves[t].name;
  }
}

void count_casts(std::span<const exec::TensorMove> moves,
                 std::span<const exec::CopiedTensor> copied, TransformCast& cast) {
  cast.counts.emplace();
  for (size_t t = 0; t < copied.size(); ++t) {
    if (!copied[t].cast) continue;
    *cast.counts += copied[t].cast->counts;
    const bool overflows = copied[t].cast->counts.overflowed > 0;
    if (overflows && cast.overflow_example.empty()) cast.overflow_example = moves[t].name;
  }
}

/// Claims the output and creates its hidden folder, or continues that of an interrupted run.
void begin_output(std::optional<store::OutputFolder>& folder, const WriteOptions& options,
                  const RunIdentity& identity, const WriteRun& run,
                  std::vector<std::string>& warnings) {
  if (options.force) check_replaceable(options.output);
  store::OutputClaim claim(options.output,
                           options.force ? store::Existing::kReplace : store::Existing::kRefuse);
  if (options.resume) check_same_run(claim, identity);
  std::ranges::copy(lost_work(claim, identity), std::back_inserter(warnings));
  folder.emplace(std::move(claim), identity.id(),
                 options.resume ? store::Leftover::kContinue : store::Leftover::kDiscard);
  // Files of an interrupted run already have their space.
  if (!folder->continues()) check_space(run, folder->working_path(), options.output);
}

/// Work of one process for a whole output.
class LoneRun {
 public:
  LoneRun(const WriteRun& run, const WriteOptions& options)
      : run_(run),
        options_(options),
        identity_(run_identity(run.source, run.target, run.plan)),
        sources_(exec::open_sources(run.source.files, options.io)) {}

  void go(bool compare_replicas, TransformReport& report) {
    begin_output(folder_, options_, identity_, run_, report.warnings);
    const store::OutputPlace& place = folder_->claim().place();
    exec::Journal journal(store::hidden_journal(place, identity_.id(), 0),
                          journal_title(identity_, options_, place.path(), std::ssize(run_.moves)),
                          {.bytes = options_.journal_bytes}, [this] { folder_->sync(); });
    try {
      if (compare_replicas) {
        report.replicas_compared = api::compare_replicas(run_.source, sources_, options_.resources);
      }
      require_equal(run_.source, run_.target.left_out, sources_, options_.resources);
      move(journal, report);
      complete(report);
    } catch (Error& error) {
      commit_finished(journal);
      keep_for_resume(error, run_, identity_, *folder_, options_.worth_keeping);
      throw;
    }
  }

 private:
  void move(exec::Journal& journal, TransformReport& report) {
    const bool continues = folder_->continues();
    const auto targets = open_files(
        run_, options_.io, continues ? FoundFiles::kKept : FoundFiles::kNone,
        [&](const std::string& name) -> store::File& { return folder_->create_or_open(name); });
    write_frames(run_, targets);
    exec::FinishedTensors finished = journal.take_up();
    finished.merge(finished_tensors(folder_->claim().place(), identity_));
    MovedTensors moved =
        move_tensors(run_, std::vector<bool>(run_.moves.size(), true), sources_,
                     {targets, journal, std::move(finished), continues}, options_.resources);
    const TakenUp& found = moved.taken_up;
    if (continues)
      report.resumed = {std::ssize(found.tensors), found.bytes, std::ssize(found.damaged)};
    copied_.resize(run_.moves.size());
    for (auto& [tensor, result] : moved.all) copied_[tensor] = std::move(result);
  }

  void complete(TransformReport& report) {
    count_changes(run_, copied_, report);
    const auto written = complete_files(run_, copied_, options_, *folder_);
    if (options_.verify) {
      const auto hash = [&](size_t t, size_t h) { return std::optional(copied_[t].xxh3[h]); };
      report.bytes_verified =
          verify_output(run_, folder_->working_path(), hash,
                        {.tensors = std::vector<bool>(copied_.size(), true)}, options_.resources);
    }
    const std::string left = folder_->publish(written);
    if (!left.empty()) report.warnings.push_back(undeleted_text(left));
    const bool has_summary = !run_.plan.summary_name.empty();
    report.written.emplace().files = std::ssize(written) - (has_summary ? 2 : 1);  // without the
                                                                                   // manifest
    for (const exec::CopiedTensor& tensor : copied_) {
      report.written->shared_bytes += tensor.shared_bytes;
    }
  }

  const WriteRun& run_;
  const WriteOptions& options_;
  RunIdentity identity_;
  std::vector<exec::SourceFile> sources_;
  std::optional<store::OutputFolder> folder_;
  std::vector<exec::CopiedTensor> copied_;
};

}  // namespace

void run_alone(const WriteRun& run, const WriteOptions& options, bool compare_replicas,
               TransformReport& report) {
  LoneRun(run, options).go(compare_replicas, report);
}

void count_changes(const WriteRun& run, std::span<const exec::CopiedTensor> copied,
                   TransformReport& report) {
  if (report.dequantized) count_unpacked(run.moves, copied, *report.dequantized);
  if (report.cast) count_casts(run.moves, copied, *report.cast);
}

}  // namespace shardtool::api
