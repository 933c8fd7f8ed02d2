#include "lib/api/transfer/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "lib/api/dequantize/unpacked_tensor.h"
#include "lib/api/team.h"
#include "lib/api/transfer/output_plan.h"
#include "lib/api/transfer/resume.h"
#include "lib/api/transfer/run_identity.h"
#include "lib/api/transfer/same_run.h"
#include "lib/api/transfer/sources/replicas.h"
#include "lib/api/transfer/write_files.h"
#include "lib/api/verify.h"
#include "lib/base/error.h"
#include "lib/base/peak_memory.h"
#include "lib/base/text.h"
#include "lib/index/join.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;

/// True if `inner` equals or is inside `outer`; both canonical.
bool is_within(const fs::path& inner, const fs::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

void check_apart(const LogicalCheckpoint& source, const std::string& output) {
  const fs::path to = fs::weakly_canonical(fs::absolute(output));
  for (const format::Checkpoint& part : source.parts) {
    // An output next to a single file is allowed; inside a checkpoint's folder it would become part
    // of it.
    const bool is_file = fs::is_regular_file(part.path);
    const fs::path from = fs::weakly_canonical(fs::absolute(is_file ? part.path : part.folder()));
    if (!is_within(from, to) && !is_within(to, from)) continue;
    throw Error(
        ErrorCode::kOutputAliasesInput,
        fmt::format("one of the output {} and the input {} contains the other", output, part.path))
        .help("write to a folder beside the checkpoint");
  }
}

/// Lets --force replace only an output of this tool, never another folder with the same name.
void check_replaceable(const std::string& output) {
  std::error_code unreadable;
  const bool has_content =
      fs::is_directory(output, unreadable) && !fs::is_empty(output, unreadable);
  if (!has_content || fs::exists(fs::path(output) / format::kManifestName, unreadable)) return;
  throw Error(ErrorCode::kOutputExists,
              "the folder is not an output of shardtool: it has no manifest.json")
      .at({output, 0, 0, {}})
      .help(
          "--force only replaces earlier outputs; choose another folder, or delete this one "
          "yourself");
}

void check_space(const OutputPlan& plan, const store::OutputFolder& folder) {
  if (folder.continues()) return;  // the files already have their space
  i64 needed = 0;
  for (const auto& file : plan.files) needed += file.size;
  if (needed <= folder.bytes_free()) return;
  throw Error(ErrorCode::kNoSpace,
              fmt::format("the output needs {}, its file system has {} free", format_bytes(needed),
                          format_bytes(folder.bytes_free())))
      .at({folder.final_path(), 0, 0, {}})
      .help("write fewer --ranks at a time, or to another file system");
}

/// Sorts by name and drops tensors without ranks. Sorts names first, and moves every tensor once.
void sort_by_name(const LogicalCheckpoint& source, TargetLayout& target) {
  std::vector<std::pair<std::string_view, size_t>> names;
  names.reserve(target.tensors.size());
  for (size_t t = 0; t < target.tensors.size(); ++t) {
    const TargetTensor& tensor = target.tensors[t];
    if (!tensor.ranks.empty()) names.emplace_back(source.tensors[tensor.source].spec.name, t);
  }
  std::sort(names.begin(), names.end());
  std::vector<TargetTensor> sorted;
  sorted.reserve(names.size());
  for (const auto& [name, t] : names) sorted.push_back(std::move(target.tensors[t]));
  target.tensors = std::move(sorted);
}

/// kShared if the output's file system can share extents with every source file.
Extents possible_extents(const LogicalCheckpoint& source, const std::string& output) {
  const std::string folder = store::look_at_output(output).parent;
  const bool can =
      std::all_of(source.files.begin(), source.files.end(), [&](const exec::SurveyedFile& file) {
        return store::can_share(store::open_read(file.path), folder);
      });
  return can ? Extents::kShared : Extents::kOwn;
}

std::vector<bool> want_whole(std::span<const exec::TensorMove> moves) {
  std::map<const index::HolderSet*, bool> known;  // holder sets are shared by many tensors
  std::vector<bool> whole;
  for (const exec::TensorMove& move : moves) {
    const auto [found, is_new] = known.try_emplace(move.to.holders.get());
    if (is_new) found->second = index::covers(*move.to.holders);
    whole.push_back(found->second);
  }
  return whole;
}

/// Returns the conversion that the options request, before anything is counted.
std::optional<TransformCast> planned_cast(const LogicalCheckpoint& source,
                                          const WriteOptions& options) {
  if (!options.dtype) return std::nullopt;
  TransformCast cast;
  cast.to = *options.dtype;
  std::set<Dtype> from;
  for (const LogicalTensor& tensor : source.tensors) {
    ++(tensor.cast_from ? cast.tensors : cast.kept);
    if (tensor.cast_from) from.insert(*tensor.cast_from);
  }
  cast.from.assign(from.begin(), from.end());
  return cast;
}

/// Returns the unpacking that the options request, before anything is counted.
std::optional<TransformDequantize> planned_unpacking(const LogicalCheckpoint& source) {
  if (!source.is_dequantized) return std::nullopt;
  TransformDequantize report;
  report.stored = std::ssize(source.stored);
  report.left_out = source.left_out;
  for (const LogicalTensor& tensor : source.tensors) {
    if (!tensor.unpacked) continue;
    ++report.weights;
    report.scheme = tensor.unpacked->weight().scheme;
    report.to = tensor.spec.dtype;
  }
  return report;
}

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

/// A task with everything computed before the first byte moves.
struct Planned {
  LogicalCheckpoint source;
  TargetLayout target;
  Extents extents = Extents::kOwn;
  OutputPlan plan;
  std::vector<exec::TensorMove> moves;
  std::vector<size_t> order;      ///< move indices by position in the source
  std::vector<bool> wants_whole;  ///< per move: the destinations hold every element
  std::vector<int> owners;        ///< per move: the process that executes it

  Planned(Task task, const WriteOptions& options)
      : source(std::move(task.source)), target(std::move(task.target)) {
    sort_by_name(source, target);
    if (!options.dry_run) {
      check_apart(source, options.output);
      extents = possible_extents(source, options.output);
    }
    plan = plan_output(source, target, options.max_file_size, extents);
    moves = plan_moves(source, target, plan);
    exec::check_moves(moves);
    order = source_order(moves);
    wants_whole = want_whole(moves);
    owners = share_out(moves, order, processes(options));
  }

  TransformReport report(const WriteOptions& options) const {
    TransformReport report;
    report.plan = summarize(source, target, plan);
    if (options.launch) {
      report.plan.shares = summarize_shares(moves, owners, processes(options));
    }
    report.dequantized = planned_unpacking(source);
    report.cast = planned_cast(source, options);
    report.output = options.output;
    report.warnings = source.warnings();
    report.warnings.insert(report.warnings.end(), target.warnings.begin(), target.warnings.end());
    return report;
  }

 private:
  static int processes(const WriteOptions& options) {
    return options.launch ? options.launch->size : 1;
  }
};

/// Claims the output and creates its hidden folder, or continues that of an interrupted run.
void begin_output(std::optional<store::OutputFolder>& folder, const WriteOptions& options,
                  const RunIdentity& identity, const OutputPlan& plan) {
  if (options.force) check_replaceable(options.output);
  store::OutputClaim claim(options.output,
                           options.force ? store::Existing::kReplace : store::Existing::kRefuse);
  if (options.resume) check_same_run(claim, identity);
  folder.emplace(std::move(claim), identity.id(),
                 options.resume ? store::Leftover::kContinue : store::Leftover::kDiscard);
  check_space(plan, *folder);
}

/// Joint work of the processes of a run, each with its own share of the tensors. The first one
/// leads: it owns the folder and completes it.
class SharedRun {
 public:
  SharedRun(const WriteRun& run, std::span<const int> owners, const WriteOptions& options,
            Team& team)
      : run_(run),
        identity_(run_identity(run_.source, run_.target, run_.plan)),
        options_(options),
        team_(team),
        resources_(options.resources),
        sources_(exec::open_sources(run_.source.files, options.io)) {
    resources_.cancel = team.cancel();
    if (!team.leads()) resources_.on_progress = nullptr;
    for (const int owner : owners) is_mine_.push_back(owner == team.rank());
  }

  void go(bool compare_replicas, TransformReport& report) {
    require_same_run(team_, run_, identity_);
    team_.all_do([&] {
      if (team_.leads()) begin_output(folder_, options_, identity_, run_.plan);
    });
    try {
      if (compare_replicas) report.replicas_compared = compare_shares();
      compare_left_out();
      team_.all_do([&] {
        if (team_.leads()) take_files(create_files(run_, options_.io, *folder_));
      });
      copy_shares(report);
      complete(report);
    } catch (Error& error) {
      if (journal_) commit_what_is_finished();
      if (team_.leads()) keep_for_resume(error, run_, identity_, *folder_, options_.worth_keeping);
      if (error.is_leaderless()) error.resumable();  // a lost leader has not removed the folder
      throw;
    }
  }

 private:
  i64 compare_shares() {
    i64 compared = 0;
    team_.all_do([&] {
      compared =
          api::compare_replicas(run_.source, sources_, resources_, {team_.rank(), team_.size()});
    });
    return team_.sum(compared);
  }

  void compare_left_out() {
    team_.all_do([&] {
      if (team_.leads()) {
        require_equal(run_.source, run_.target.left_out, sources_, resources_);
      }
    });
  }

  void copy_shares(TransformReport& report) {
    const store::OutputPlace place = store::look_at_output(options_.output);
    const bool continues = team_.sum(team_.leads() && folder_->continues() ? 1 : 0) > 0;
    team_.all_do([&] {
      open_own_files(place);
      const std::string own = hidden_journal(place, identity_.id(), team_.rank());
      journal_.emplace(own, identity_.text(), exec::JournalLimits{.bytes = options_.journal_bytes},
                       [this] { sync(); });
      auto others = hidden_journals(place, identity_.id());
      std::erase(others, own);
      try {
        exec::FinishedTensors finished = journal_->take_up();
        finished.merge(finished_in(others, identity_));
        finished_ = take_up(run_, is_mine_, std::move(finished), targets_, resources_);
        if (continues) clear_padded_shards(run_, is_mine_, finished_.tensors, targets_);
        copied_ = copy_tensors(run_, is_mine_, finished_.tensors, sources_, targets_, resources_,
                               *journal_);
        // Others may take hours, or fail.
        if (team_.size() > 1) journal_->commit();
      } catch (const Error&) {
        commit_what_is_finished();
        throw;
      }
    });
    const TransformResumed all{team_.sum(std::ssize(finished_.tensors)), team_.sum(finished_.bytes),
                               team_.sum(finished_.damaged)};
    if (continues) report.resumed = all;
  }

  void open_own_files(const store::OutputPlace& place) {
    if (team_.leads()) return;
    files_.emplace(hidden_folder(place, identity_.id()));
    take_files(open_files(run_.plan, options_.io, *files_));
  }

  void take_files(std::vector<exec::TargetFile> files) {
    targets_ = std::move(files);
    for (exec::TargetFile& file : targets_) {
      if (run_.extents == Extents::kShared) file.allow_sharing();
    }
  }

  void sync() { team_.leads() ? folder_->sync() : files_->sync(); }

  /// Keeps finished tensors for a resume; one that cannot be committed counts as not finished.
  void commit_what_is_finished() noexcept {
    try {
      journal_->commit();
    } catch (const std::exception&) {
      // Earlier commits stay valid.
    }
  }

  void complete(TransformReport& report) {
    exec::FinishedTensors own = std::move(finished_.tensors);
    own.merge(copied_);
    i64 shared = 0;
    for (const auto& [tensor, copied] : own) shared += copied.shared_bytes;
    const std::vector<std::string> shares =
        team_.comm().gather(team_.leads() ? std::string() : exec::to_lines(own));
    team_.all_do([&] {
      if (!team_.leads()) return sync();
      std::vector<exec::CopiedTensor> copied(run_.moves.size());
      for (const std::string& share : shares) own.merge(exec::parse_lines(share));
      for (auto& [tensor, result] : own) copied[tensor] = std::move(result);
      if (report.dequantized) count_unpacked(run_.moves, copied, *report.dequantized);
      if (report.cast) count_casts(run_.moves, copied, *report.cast);
      written_ = complete_files(run_, sources_, targets_, copied, options_, *folder_);
      if (!options_.verify) return;
      const auto hash = [&](size_t t, size_t h) { return std::optional(copied[t].xxh3[h]); };
      report.bytes_verified =
          verify_output(run_, folder_->working_path(), hash, {}, options_.resources);
    });
    team_.all_do([&] {
      if (team_.leads()) folder_->publish(written_);
    });
    const bool has_summary = !run_.plan.summary_name.empty();
    report.written.emplace().files = std::ssize(written_) - (has_summary ? 2 : 1);  // without the
                                                                                    // manifest
    report.written->shared_bytes = team_.sum(shared);
  }

  const WriteRun& run_;
  RunIdentity identity_;
  const WriteOptions& options_;
  Team& team_;
  exec::Resources resources_;
  std::vector<exec::SourceFile> sources_;
  std::vector<bool> is_mine_;
  std::optional<store::OutputFolder> folder_;  ///< in the leading process
  std::optional<store::OutputFiles> files_;    ///< in the other processes
  std::vector<exec::TargetFile> targets_;
  std::optional<exec::Journal> journal_;
  TakenUp finished_;
  exec::FinishedTensors copied_;
  std::vector<store::WrittenFile> written_;
};

/// Returns true if all processes find the output complete. Verifies it if the options request that.
bool was_complete(const WriteRun& run, const WriteOptions& options, Team& team,
                  TransformReport& report) {
  const auto manifest =
      complete_output(options.output, run.source, run.target, run.plan, options.sha256);
  if (!team.agrees(manifest.has_value())) return false;
  report.was_complete = true;
  if (!options.verify) return true;
  i64 bytes = 0;
  team.all_do([&] {
    const auto hash = [&](size_t t, size_t h) { return manifest->tensors[t].shards[h].xxh3; };
    bytes = verify_output(run, options.output, hash, {team.rank(), team.size()}, options.resources);
  });
  report.bytes_verified = team.sum(bytes);
  return true;
}

}  // namespace

TransformReport transfer(const std::function<Task()>& open_task, const WriteOptions& options,
                         bool compare_replicas) {
  const auto start = std::chrono::steady_clock::now();
  Team team(options);
  std::optional<Planned> planned;
  team.all_do([&] { planned.emplace(open_task(), options); });
  const auto& [source, target, extents, plan, moves, order, wants_whole, owners] = *planned;
  TransformReport report = planned->report(options);
  if (options.dry_run) return report;

  const WriteRun run{source, target, plan, moves, order, wants_whole, extents};
  if (options.resume && was_complete(run, options, team, report)) return report;
  SharedRun(run, owners, options, team).go(compare_replicas, report);

  TransformWritten& written = *report.written;
  for (const auto& file : plan.files) written.bytes += file.size;
  written.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  written.bytes_per_second = static_cast<double>(written.bytes) / std::max(written.seconds, 1e-9);
  written.peak_rss_bytes = peak_memory_bytes();
  return report;
}

}  // namespace shardtool::api
