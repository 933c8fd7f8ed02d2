#include "lib/api/transfer/share_run.h"

#include <fcntl.h>

#include <optional>
#include <random>
#include <utility>

#include "lib/api/finish.h"
#include "lib/api/transfer/joined_shares.h"
#include "lib/api/transfer/lone_run.h"
#include "lib/api/transfer/output_checks.h"
#include "lib/api/transfer/output_manifest.h"
#include "lib/api/transfer/resume.h"
#include "lib/api/transfer/run_identity.h"
#include "lib/api/transfer/run_note.h"
#include "lib/api/transfer/share_record.h"
#include "lib/api/transfer/shares.h"
#include "lib/api/transfer/sources/replicas.h"
#include "lib/api/verify.h"
#include "lib/base/error.h"
#include "lib/store/local/shared_folder.h"
#include "lib/store/local/syscalls.h"

namespace shardtool::api {
namespace {

/// Number of a journal that no other process of the run has.
int journal_number() {
  return static_cast<int>(std::random_device()() >> 1);
}

/// Joins the folder of the run. Two runs that begin at the same time are both refused.
store::SharedFolder join_folder(const WriteRun& run, const WriteOptions& options,
                                const RunIdentity& identity) {
  if (options.force) check_replaceable(options.output);
  store::OutputClaim claim(options.output,
                           options.force ? store::Existing::kReplace : store::Existing::kRefuse,
                           store::LockKind::kShared);
  check_only_run(claim, identity);
  store::SharedFolder folder(std::move(claim), identity.id());
  try {
    check_only_run(folder.claim(), identity);
    if (folder.is_new()) check_space(run, folder.working_path(), options.output);
  } catch (const Error&) {
    // Fails if another process of this run has begun to fill the folder.
    const std::string& path = folder.working_path();
    if (folder.is_new()) store::syscalls().unlinkat(AT_FDCWD, path.c_str(), AT_REMOVEDIR);
    throw;
  }
  return folder;
}

/// Work of one process for one share.
class ShareRun {
 public:
  ShareRun(const WriteRun& run, const WriteOptions& options, const std::vector<bool>& is_mine,
           const RunIdentity& identity)
      : run_(run),
        options_(options),
        share_(*options.share),
        is_mine_(is_mine),
        identity_(identity),
        sources_(exec::open_sources(run.source.files, options.io)),
        folder_(join_folder(run, options, identity)),
        journal_(store::hidden_journal(folder_.place(), identity.id(), journal_number()),
                 journal_title(identity, options, folder_.place().path(), std::ssize(run.moves)),
                 {.bytes = options.journal_bytes}, [this] { folder_.sync(); }) {}

  void go(bool compare_replicas, TransformReport& report) {
    try {
      if (compare_replicas) {
        report.replicas_compared =
            api::compare_replicas(run_.source, sources_, options_.resources, share_);
      }
      if (leads(options_)) {
        require_equal(run_.source, run_.target.left_out, sources_, options_.resources);
      }
      move(report);
      if (options_.verify) verify(report);
      record();
    } catch (Error& error) {
      commit_finished(journal_);
      if (leaves_data_alone(error.code())) error.resumable();
      throw;
    }
  }

 private:
  void move(TransformReport& report) {
    if (!ended_shares(folder_.place(), identity_.id()).empty()) {
      // Opening would give a file that was cut off its size again.
      for (const format::PlannedFile& file : run_.plan.files) {
        require_written({file.name, file.size}, folder_.working_path());
      }
    }
    const auto open = [&](const std::string& name) -> store::File& { return folder_.open(name); };
    const auto targets = open_files(run_, options_.io, FoundFiles::kKept, open);
    if (leads(options_)) {
      write_frames(run_, targets);
      others_ = write_other_files(run_, options_, open);
    }
    auto finished = finished_tensors(folder_.place(), identity_);
    MovedTensors moved = move_tensors(run_, is_mine_, sources_,
                                      {targets, journal_, std::move(finished)}, options_.resources);
    const TakenUp& found = moved.taken_up;
    if (!found.tensors.empty() || !found.damaged.empty()) {
      report.resumed = {std::ssize(found.tensors), found.bytes, std::ssize(found.damaged)};
    }
    copied_.resize(run_.moves.size());
    for (auto& [tensor, result] : moved.all) copied_[tensor] = std::move(result);
    count_changes(run_, copied_, report);
    count_moved(report.share.emplace());
  }

  void count_moved(TransformShare& moved) const {
    moved.share = share_;
    for (size_t t = 0; t < copied_.size(); ++t) {
      if (!is_mine_[t]) continue;
      ++moved.tensors;
      const exec::MoveSide& to = run_.moves[t].to;
      for (int h = 0; h < to.holders->size(); ++h) {
        moved.bytes += exec::holder_bytes(*to.holders, h, run_.moves[t].result_dtype());
      }
    }
  }

  void verify(TransformReport& report) {
    const auto hash = [&](size_t t, size_t h) { return std::optional(copied_[t].xxh3[h]); };
    report.bytes_verified = verify_output(run_, folder_.working_path(), hash,
                                          {leads(options_), is_mine_}, options_.resources);
  }

  /// Throws kInternal for an incomplete tensor.
  void record() {
    ShareRecord record{share_, identity_.text(), std::ssize(run_.moves), others_,
                       manifest_head(run_.source, run_.target, run_.plan)};
    if (options_.sha256) {
      for (format::FileRecord& file : record.manifest.files) file.sha256 = kUnknownSha256;
    }
    for (size_t t = 0; t < copied_.size(); ++t) {
      if (!is_mine_[t]) continue;
      if (!is_complete(run_, t, copied_[t])) {
        throw Error(ErrorCode::kInternal, "a tensor of the share was not wholly written")
            .tensor(run_.moves[t].name)
            .help("please report this with the command line that led to it");
      }
      if (run_.target.tensors[t].fills) record.filled.push_back(run_.moves[t].name);
      record.manifest.tensors.push_back(
          tensor_record(run_.source, run_.target, run_.plan, t, copied_[t]));
    }
    journal_.commit();
    folder_.sync();
    folder_.put_beside(
        store::hidden_record(folder_.place(), identity_.id(), share_.number, share_.of),
        to_text(record));
  }

  const WriteRun& run_;
  const WriteOptions& options_;
  Share share_;
  const std::vector<bool>& is_mine_;
  const RunIdentity& identity_;
  std::vector<exec::SourceFile> sources_;
  store::SharedFolder folder_;
  exec::Journal journal_;
  std::vector<store::WrittenFile> others_;
  std::vector<exec::CopiedTensor> copied_;
};

}  // namespace

void run_share(const WriteRun& run, const WriteOptions& options, const std::vector<bool>& is_mine,
               bool compare_replicas, TransformReport& report) {
  const RunIdentity identity = run_identity(run.source, run.target, run.plan);
  // The claim ends before the output is published: of the shares that end last, one has it alone.
  ShareRun(run, options, is_mine, identity).go(compare_replicas, report);
  FinishOptions finish{options.output, options.force, options.verify, options.resources};
  const LastShare last = finish_if_last(finish, identity.id(), options.share->of);
  report.share->published = last.published;
  report.share->missing = last.missing;
  if (last.bytes_verified) report.bytes_verified = last.bytes_verified;
}

}  // namespace shardtool::api
