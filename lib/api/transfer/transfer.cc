#include "lib/api/transfer/transfer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "lib/api/dequantize/unpacked_tensor.h"
#include "lib/api/transfer/lone_run.h"
#include "lib/api/transfer/output_checks.h"
#include "lib/api/transfer/output_plan.h"
#include "lib/api/transfer/resume.h"
#include "lib/api/transfer/share_run.h"
#include "lib/api/transfer/shares.h"
#include "lib/api/transfer/sources/complete_output.h"
#include "lib/api/transfer/store/place.h"
#include "lib/api/transfer/store/requests.h"
#include "lib/api/transfer/store/run.h"
#include "lib/api/transfer/store/staged_output.h"
#include "lib/api/transfer/write_files.h"
#include "lib/api/verify.h"
#include "lib/base/error.h"
#include "lib/base/peak_memory.h"
#include "lib/base/text.h"
#include "lib/exec/files/sampled_hash.h"
#include "lib/index/coverage.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;

/// Options for a source of which a change between two runs could not be seen: nobody continues such
/// a run. Those given for others. Throws kUnsupported for a run that would continue one.
WriteOptions options_for(const LogicalCheckpoint& source, const WriteOptions& options) {
  const auto unknown = std::ranges::find_if(source.files, [](const exec::SurveyedFile& file) {
    return store::is_remote(file.path) && !file.identity.is_known();
  });
  if (unknown == source.files.end()) return options;
  if (options.resume || options.share) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{} needs an input of which a change can be seen",
                            options.share ? "--share" : "--resume"))
        .at({unknown->path, 0, 0, {}})
        .note("found", "the object store tells neither an ETag nor the time of the last change")
        .help("write the whole output in one run without it, or copy the input to this machine");
  }
  WriteOptions chosen = options;
  chosen.worth_keeping = std::numeric_limits<i64>::max();
  return chosen;
}

/// kShared if the file system of the output's folder can make reflinks to every source file.
Extents possible_extents(const LogicalCheckpoint& source, const std::string& folder) {
  const bool can =
      std::all_of(source.files.begin(), source.files.end(), [&](const exec::SurveyedFile& file) {
        return !store::is_remote(file.path) &&
               store::can_share(store::open_read(file.path), folder);
      });
  return can ? Extents::kShared : Extents::kOwn;
}

/// Throws kUsage for an output that is made on this machine before it is sent, and is not whole.
void refuse_options(const WriteOptions& options) {
  if (!options.resume && !options.share) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("{} works for outputs on a file system only, if padding repeats elements",
                          options.share ? "--share" : "--resume"))
      .note("output", options.output)
      .help("run the whole command again: it replaces what an interrupted run has left");
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

/// Throws kCoverage for an output of all ranks whose source lacks tensors of the split that it is
/// of. An output of some ranks records them as its own.
void require_all_tensors(const LogicalCheckpoint& source, TargetLayout& target) {
  target.elsewhere = source.elsewhere;
  if (source.elsewhere.empty()) return;
  if (target.leaves_ranks_out()) return;
  std::vector<std::string> folders;
  for (const format::Checkpoint& part : source.parts) {
    folders.push_back(quote_for_message(part.path));
  }
  throw Error(ErrorCode::kCoverage, "the folders of some ranks are missing, and tensors with them")
      .tensor(quote_for_message(source.elsewhere.front()))
      .note("missing", plural(std::ssize(source.elsewhere), "tensor"))
      .note("given", fmt::format("{}", fmt::join(folders, ", ")))
      .help("give the folders of all ranks together");
}

/// A task with everything computed before the first byte moves.
struct Planned {
  LogicalCheckpoint source;
  TargetLayout target;
  Extents extents = Extents::kOwn;
  OutputPlan plan;
  std::vector<exec::TensorMove> moves;
  /// Move indices by position in the source or, for an output on a store, in the output: the parts
  /// of its objects are then completed one after another.
  std::vector<size_t> order;
  std::vector<bool> wants_whole;  ///< per move: the destinations hold every element
  std::vector<int> owners;        ///< per move: the share that executes it

  Planned(Task task, const WriteOptions& options)
      : source(std::move(task.source)), target(std::move(task.target)) {
    require_all_tensors(source, target);
    sort_by_name(source, target);
    const bool is_remote = store::is_remote(options.output);
    if (!options.dry_run && is_remote) check_apart_on_store(source, options.output);
    if (!options.dry_run && !is_remote) check_apart(source, options.output);
    if (!is_remote) {
      const std::string& output = options.output;
      extents = possible_extents(
          source, options.dry_run ? folder_above(output) : store::look_at_output(output).parent);
    }
    plan = plan_output(source, target, options.max_file_size, extents);
    moves = plan_moves(source, target, plan);
    exec::check_moves(moves);
    order = is_remote ? output_order(moves) : source_order(moves);
    wants_whole = want_whole(moves);
    owners = share_out(moves, order, shares(options));
    // The digests of tensors that ranks of other runs hold are unknown: merge could not tell that
    // their source has other values.
    if (target.leaves_ranks_out() && !source.parts.front().manifest && !options.dry_run)
      source.sampled = exec::sampled_hashes(source.files);
  }

  WriteRun run() const { return {source, target, plan, moves, order, wants_whole, extents}; }

  TransformReport report(const WriteOptions& options) const {
    TransformReport report;
    report.plan = summarize(source, target, plan);
    if (options.share) report.plan.shares = summarize_shares(moves, owners, shares(options));
    report.dequantized = planned_unpacking(source);
    report.cast = planned_cast(source, options);
    report.output = options.output;
    report.warnings = source.warnings();
    report.warnings.insert(report.warnings.end(), target.warnings.begin(), target.warnings.end());
    return report;
  }

  /// Per move: true if it belongs to the share that the options choose, or without one.
  std::vector<bool> own_moves(const WriteOptions& options) const {
    std::vector<bool> own;
    for (const int owner : owners) own.push_back(!options.share || owner == options.share->number);
    return own;
  }

 private:
  static int shares(const WriteOptions& options) { return options.share ? options.share->of : 1; }
};

/// Counts the requests for the tensors of `is_mine`.
std::optional<SourceRequests> source_requests(const Planned& planned,
                                              const std::vector<bool>& is_mine,
                                              const WriteOptions& options) {
  const auto& files = planned.source.files;
  const bool is_remote = std::ranges::any_of(
      files, [](const exec::SurveyedFile& file) { return store::is_remote(file.path); });
  const bool computes = std::ranges::any_of(
      planned.moves, [](const exec::TensorMove& move) { return move.computed != nullptr; });
  if (!is_remote || computes) return std::nullopt;
  if (store::is_remote(options.output) && can_stream(planned.target)) {
    return count_requests_to_store(planned.run(), options, is_mine);
  }
  std::vector<size_t> order;
  for (const size_t t : planned.order) {
    if (is_mine[t]) order.push_back(t);
  }
  return count_requests(planned.source, planned.moves, order, options);
}

/// Returns true if the output is complete. Verifies it, or what the share holds of it, if the
/// options request that. Throws kOutputExists for an output of the same form that has other values,
/// unless it may be replaced.
bool was_complete(const WriteRun& run, const WriteOptions& options,
                  const std::vector<bool>& is_mine, TransformReport& report) {
  const auto manifest = complete_output(run, options);
  if (!manifest) return false;
  if (!has_values_of(run, options, *manifest)) {
    if (options.force) return false;
    throw store::output_exists(options.output)
        .note("found", "an output of the same form, with other values than the source's");
  }
  report.was_complete = true;
  if (!options.verify) return true;
  const auto hash = [&](size_t t, size_t h) { return manifest->tensors[t].shards[h].xxh3; };
  report.bytes_verified =
      verify_output(run, options.output, hash, {.tensors = is_mine}, options.resources);
  return true;
}

/// Measures a run from its start.
class Stopwatch {
 public:
  /// Sets the time, speed and memory of what was written; `written.bytes` are known.
  template <class Written>
  void measure(Written& written) const {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start_;
    written.seconds = took.count();
    written.bytes_per_second = static_cast<double>(written.bytes) / std::max(took.count(), 1e-9);
    written.peak_rss_bytes = peak_memory_bytes();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// True if an earlier run, or another process, may have completed the output.
bool may_be_complete(const WriteOptions& options) {
  return options.resume || options.share;
}

/// Writes the output on this machine, and then sends it to the store.
TransformReport transfer_staged(Task task, const WriteOptions& options, bool compare_replicas,
                                const Stopwatch& watch) {
  refuse_options(options);
  TransformReport report = write_to_store(task.source, options, [&](const WriteOptions& local) {
    return transfer(std::move(task), local, compare_replicas);
  });
  if (report.written) watch.measure(*report.written);
  return report;
}

/// Completes the report of a dry run: the requests, and a warning if a run would refuse the output.
void report_dry_run(const Planned& planned, const std::vector<bool>& is_mine,
                    const WriteOptions& options, TransformReport& report) {
  const WriteRun run = planned.run();
  report.plan.requests = source_requests(planned, is_mine, options);
  const bool is_there = may_be_complete(options) && complete_output(run, options);
  auto refusal = is_there ? std::nullopt : refusal_text(run, options);
  if (refusal) report.warnings.push_back(*std::move(refusal));
}

/// Deletes what earlier runs have left beside an output that is complete, and looks for files that
/// are not its own.
void tidy_beside(const WriteRun& run, const WriteOptions& options, TransformReport& report) {
  if (store::is_remote(options.output)) {
    tidy_up(run, options);
  } else {
    const RunIdentity identity = run_identity(run.source, run.target, run.plan);
    discard_leftovers(options.output, identity, report.warnings);
  }
  std::set<std::string> own;
  for (const format::PlannedFile& file : run.plan.files) own.insert(file.name);
  look_for_extra_files(options.output, own, options.verify, report.warnings);
}

/// Writes the output, or the share of it that the options choose, to the store.
void write_on_store(const WriteRun& run, const WriteOptions& options,
                    const std::vector<bool>& is_mine, bool compare_replicas,
                    TransformReport& report) {
  try {
    run_to_store(run, options, is_mine, compare_replicas, report);
  } catch (const Error& error) {
    if (!options.share || error.code() == ErrorCode::kInterrupted) throw;
    // Another process may have moved the same share and published the output meanwhile.
    if (!was_complete(run, options, is_mine, report)) throw;
    tidy_up(run, options);
  }
}

/// Writes the share that the options choose to the output's folder.
void write_share(const WriteRun& run, const WriteOptions& options, const std::vector<bool>& is_mine,
                 bool compare_replicas, TransformReport& report) {
  try {
    run_share(run, options, is_mine, compare_replicas, report);
  } catch (const Error& error) {
    // Another process may have moved the same share and published the output meanwhile.
    const bool exists = error.code() == ErrorCode::kOutputExists;
    if (!exists || !was_complete(run, options, is_mine, report)) throw;
  }
}

}  // namespace

/// Sorts names first, and moves every tensor once.
void sort_by_name(const LogicalCheckpoint& source, TargetLayout& target) {
  std::vector<std::pair<std::string_view, size_t>> names;
  names.reserve(target.tensors.size());
  for (size_t t = 0; t < target.tensors.size(); ++t) {
    const TargetTensor& tensor = target.tensors[t];
    const std::string& name = source.tensors[tensor.source].spec.name;
    if (tensor.ranks.empty()) {
      target.elsewhere.push_back(name);
    } else {
      names.emplace_back(name, t);
    }
  }
  std::sort(names.begin(), names.end());
  std::ranges::sort(target.elsewhere);
  std::vector<TargetTensor> sorted;
  sorted.reserve(names.size());
  for (const auto& [name, t] : names) sorted.push_back(std::move(target.tensors[t]));
  target.tensors = std::move(sorted);
}

SourceRequests count_requests(const LogicalCheckpoint& source,
                              std::span<const exec::TensorMove> moves,
                              std::span<const size_t> order, const WriteOptions& options) {
  const auto reads = exec::store_reads({moves, order}, exec::open_sources(source.files, options.io),
                                       options.resources);
  const double needed = static_cast<double>(std::max<i64>(reads.needed, 1));
  return {reads.requests, reads.bytes, static_cast<double>(reads.bytes) / needed};
}

TransformReport transfer(Task task, const WriteOptions& asked, bool compare_replicas) {
  const Stopwatch watch;
  const WriteOptions options = options_for(task.source, asked);
  const bool is_remote = store::is_remote(options.output);
  if (is_remote && !options.dry_run && !can_stream(task.target)) {
    return transfer_staged(std::move(task), options, compare_replicas, watch);
  }
  const Planned planned(std::move(task), options);
  TransformReport report = planned.report(options);
  const std::vector<bool> is_mine = planned.own_moves(options);
  if (options.dry_run) {
    report_dry_run(planned, is_mine, options, report);
    return report;
  }
  const WriteRun run = planned.run();
  if (may_be_complete(options) && was_complete(run, options, is_mine, report)) {
    tidy_beside(run, options, report);
    return report;
  }
  if (is_remote) {
    write_on_store(run, options, is_mine, compare_replicas, report);
  } else if (options.share) {
    write_share(run, options, is_mine, compare_replicas, report);
  } else {
    run_alone(run, options, compare_replicas, report);
  }
  if (report.share) watch.measure(*report.share);
  if (report.written) {
    for (const auto& file : run.plan.files) report.written->bytes += file.size;
    watch.measure(*report.written);
  }
  return report;
}

}  // namespace shardtool::api
