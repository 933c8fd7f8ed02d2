#include "lib/api/transfer/store/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/api/transfer/lone_run.h"
#include "lib/api/transfer/output_checks.h"
#include "lib/api/transfer/output_manifest.h"
#include "lib/api/transfer/resume.h"
#include "lib/api/transfer/run_identity.h"
#include "lib/api/transfer/run_note.h"
#include "lib/api/transfer/scratch_folder.h"
#include "lib/api/transfer/share_record.h"
#include "lib/api/transfer/sources/replicas.h"
#include "lib/api/transfer/store/budget.h"
#include "lib/api/transfer/store/copying.h"
#include "lib/api/transfer/store/finish.h"
#include "lib/api/transfer/store/journal.h"
#include "lib/api/transfer/store/place.h"
#include "lib/api/verify.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/exec/files/range_hash.h"
#include "lib/store/local/output_files.h"
#include "lib/store/reader.h"
#include "lib/store/s3/upload.h"

namespace shardtool::api {
namespace {

using store::s3::ByteRange;
using store::s3::PartedOutput;

ByteRange range_of(const WriteRun& run, size_t t, int holder) {
  const exec::TensorMove& move = run.moves[t];
  return {move.to.slots[static_cast<size_t>(holder)].offset,
          exec::holder_bytes(*move.to.holders, holder, move.result_dtype())};
}

/// Calls `visit` with file and range of each part of a tensor.
template <class Visit>
void for_each_range(const WriteRun& run, size_t t, Visit visit) {
  const exec::MoveSide& to = run.moves[t].to;
  for (int h = 0; h < to.holders->size(); ++h) {
    visit(static_cast<size_t>(to.slots[static_cast<size_t>(h)].file), range_of(run, t, h));
  }
}

/// Name of the owner of an output while it is written: the same for all shares of a run.
std::string owner_of(const std::string& id, const WriteOptions& options) {
  return options.share ? id : id + "-" + random_word();
}

/// Work of one process for an output, or for a share of it.
class StoreRun {
 public:
  StoreRun(const WriteRun& run, const WriteOptions& options, const std::vector<bool>& is_mine)
      : run_(run),
        options_(options),
        is_mine_(is_mine),
        identity_(run_identity(run.source, run.target, run.plan)),
        owner_(owner_of(identity_.id(), options)),
        place_(options.output),
        sources_(exec::open_sources(run.source.files, options.io)),
        copying_(run, options, sources_),
        journal_(place_, identity_.id(), {.bytes = options.journal_bytes},
                 [this](size_t t) { return is_durable(t); }) {}

  void go(bool compare_replicas, TransformReport& report) {
    const StorePlace::Found found = place_.look();
    place_.require_writable(found, options_.force);
    if (continues()) check_only_run(found);
    try {
      begin(found);
      if (compare_replicas) {
        report.replicas_compared = api::compare_replicas(run_.source, sources_, options_.resources,
                                                         options_.share.value_or(Share{}));
      }
      if (leads()) {
        require_equal(run_.source, run_.target.left_out, sources_, options_.resources);
      }
      move(report);
      options_.share ? end_share(report) : complete(report);
    } catch (Error& error) {
      const auto next = next_owner();
      leave(error, next);
      // The store would tell of uploads, and not that another run has ended them.
      if (next && !options_.share) place_.require_own(owner_);
      throw;
    }
  }

  const RunIdentity& identity() const { return identity_; }

 private:
  bool continues() const { return options_.resume || options_.share; }
  /// True for the process that also writes what belongs to no tensor.
  bool leads() const { return !options_.share || options_.share->number == 0; }

  /// Throws kOtherRun if another run has begun to write this output.
  void check_only_run(const StorePlace::Found& found) const {
    for (const std::string& id : found.runs) {
      if (id == identity_.id() || !found.is_marked()) continue;
      const auto table = place_.uploads(id);
      if (!table) continue;
      throw other_run(parse_run_identity(table->run), identity_, options_.share.has_value())
          .at({place_.prefix(), 0, 0, {}})
          .help(fmt::format("or delete what is there: shardtool resume --discard '{}'",
                            place_.prefix()));
    }
  }

  void own(bool is_replaced) {
    if (place_.owner() != owner_) place_.mark(owner_, is_replaced);
    is_marked_ = true;
    is_replaced_ = is_replaced;
  }

  /// Owner of the prefix that this run has lost; empty if there is none by now. Nullopt if it is
  /// still this run's, or if the store does not tell.
  std::optional<std::string> next_owner() const {
    try {
      const auto owner = place_.owner();
      return is_marked_ && owner != owner_ ? std::optional(owner.value_or("")) : std::nullopt;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  /// Takes up the uploads of this run, or begins them.
  void begin(const StorePlace::Found& found) {
    if (continues() && found.is_marked()) {
      if (const auto table = place_.uploads(identity_.id())) {
        own(found.is_replaced);
        open(*table);
        return take_up();
      }
    }
    if (options_.share) {
      own(false);
      // Keeps all that other shares have begun since.
      place_.discard_runs(found);
      place_.clear(found.names, owner_);
    } else {
      const StorePlace::Found now = place_.take(found, owner_);
      is_marked_ = true;
      is_replaced_ = now.is_replaced;
      place_.discard_runs(now);
      if (!is_replaced_) place_.clear(now.names, owner_);
    }
    // Another share may have begun uploads and not told yet; what is left over ends in the end.
    if (found.is_marked() && !options_.share) place_.abort_all_uploads();
    const UploadTable known =
        place_.begin_uploads(identity_.id(), planned_uploads(), [this](UploadTable& own) {
          open(own);
          own.copies = table_.copies = copying_.copy_first(*output_);
        });
    if (!known.has_same_uploads(table_)) open(known);  // those of another share, begun at once
    if (!options_.share) return;
    check_only_run(place_.look());  // shares of two runs that begin at once are both refused
    take_up();
  }

  /// Table of the run without ids, for a store that copies.
  UploadTable planned_uploads() {
    UploadTable table{identity_.text(), {}, true, {}};
    table.about = journal_title(identity_, options_, place_.prefix(), std::ssize(run_.moves)).about;
    const i64 part_bytes = part_bytes_for(run_.plan.files.size(), options_.resources);
    for (size_t f = 0; f < run_.plan.files.size(); ++f) {
      const format::PlannedFile& file = run_.plan.files[f];
      table.objects.push_back(
          {place_.url(file.name), "", copying_.parts_of(f, file.size, part_bytes)});
    }
    return table;
  }

  void open(const UploadTable& table) {
    table_ = table;
    copying_.settle(table_.objects, table_.copies);
    output_.emplace(store::s3::shared_client(), table_.objects, place_.fragments(identity_.id()),
                    memory_of_parts(options_.resources));
  }

  void take_up() {
    take_up_parts(*output_, place_, is_replaced_);
    for (auto& [t, copied] : listed_tensors(place_, identity_.id())) {
      const bool is_good = t < is_mine_.size() && is_mine_[t] && is_complete(run_, t, copied);
      if (is_good && is_durable(t)) finished_[t] = std::move(copied);
    }
  }

  bool is_durable(size_t t) const {
    bool is_there = true;
    for_each_range(run_, t, [&](size_t file, const ByteRange& range) {
      is_there = is_there && output_->has(file, range);
    });
    return is_there;
  }

  /// Announces what this process writes: its tensors, but what the store copies of them, and the
  /// first process all that is no tensor.
  void expect() {
    if (leads()) {
      for (size_t f = 0; f < run_.plan.files.size(); ++f) {
        output_->expect(f, {0, run_.plan.files[f].size});
      }
      for (size_t t = 0; t < run_.moves.size(); ++t) {
        for_each_range(
            run_, t, [this](size_t file, const ByteRange& range) { output_->except(file, range); });
      }
    }
    const auto expect_range = [this](size_t file, const ByteRange& range) {
      output_->expect(file, range);
    };
    for (size_t t = 0; t < run_.moves.size(); ++t) {
      if (!is_mine_[t] || finished_.contains(t)) continue;
      if (!copying_.has(t)) {
        for_each_range(run_, t, expect_range);
        continue;
      }
      for (const exec::SameBytes& same : copying_.rest_of(t)) {
        expect_range(static_cast<size_t>(same.to.file), {same.to.offset, same.bytes});
      }
    }
  }

  void move(TransformReport& report) {
    expect();
    std::vector<exec::TargetFile> targets;
    for (size_t f = 0; f < run_.plan.files.size(); ++f) targets.emplace_back(*output_, f);
    if (leads()) write_frames(run_, targets);
    const bool reads_store = std::ranges::any_of(sources_, &exec::SourceFile::is_remote);
    copied_.resize(run_.moves.size());
    const std::vector<bool> others = copying_.copy(*output_, is_mine_, copied_);
    auto moved = copy_tensors(run_, others, finished_, sources_, targets,
                              resources_of_moves(options_.resources, reads_store),
                              [this](size_t t, const exec::CopiedTensor& copied, i64 bytes) {
                                journal_.finished(t, copied, bytes);
                              });
    report_resumed(report);
    moved.merge(finished_);
    for (auto& [tensor, result] : moved) copied_[tensor] = std::move(result);
    count_changes(run_, copied_, report);
    report.warnings.insert(report.warnings.end(), copying_.warnings().begin(),
                           copying_.warnings().end());
  }

  void report_resumed(TransformReport& report) const {
    if (!options_.resume && finished_.empty()) return;
    TransformResumed& resumed = report.resumed.emplace();
    resumed.tensors = std::ssize(finished_);
    for (const auto& [t, copied] : finished_) {
      for_each_range(run_, t,
                     [&](size_t, const ByteRange& range) { resumed.bytes += range.bytes; });
    }
  }

  void complete(TransformReport& report) {
    check_copied(run_, copied_);
    if (!output_->gather()) {
      throw Error(ErrorCode::kInternal, "an object was not wholly written: nothing was published")
          .at({place_.prefix(), 0, 0, {}})
          .help("please report this with the command line that led to it");
    }
    place_.require_own(owner_);
    if (is_replaced_) place_.clear(place_.look().names, owner_);
    is_replaced_ = false;
    output_->complete();
    store::look_again(place_.prefix());
    hash_rest();
    if (options_.verify) {
      const auto hash = [&](size_t t, size_t h) { return std::optional(copied_[t].xxh3[h]); };
      report.bytes_verified =
          verify_output(run_, place_.prefix(), hash,
                        {.tensors = std::vector<bool>(copied_.size(), true)}, options_.resources);
    }
    const auto others = send_other_files();
    format::Manifest manifest = manifest_head(run_.source, run_.target, run_.plan);
    if (options_.sha256) add_file_hashes(manifest, place_.prefix(), options_.resources);
    const auto record = [&](size_t t) {
      return tensor_record(run_.source, run_.target, run_.plan, t, copied_[t]);
    };
    put_manifest(place_, owner_, manifest, copied_.size(), record);
    is_whole_ = true;
    place_.publish(identity_.id(), owner_);
    report.written.emplace().files =
        std::ssize(run_.plan.files) + std::ssize(others) - (run_.plan.summary_name.empty() ? 0 : 1);
    report.written->copied_by_store = copying_.copied_bytes();
    report.output = place_.prefix();
  }

  /// Hashes what came out of order, now that it can be read.
  void hash_rest() {
    for (size_t t = 0; t < copied_.size(); ++t) {
      for (const int h : copied_[t].unhashed) {
        const auto number = static_cast<size_t>(h);
        const auto file = static_cast<size_t>(run_.moves[t].to.slots[number].file);
        const ByteRange range = range_of(run_, t, h);
        copied_[t].xxh3[number] =
            exec::hash_range(output_->object(file).url.text(), range.offset, range.bytes);
      }
    }
  }

  /// Sends the files beside the weights, without the manifest.
  std::vector<store::WrittenFile> send_other_files() {
    const ScratchFolder scratch(std::filesystem::temp_directory_path().string(), "upload");
    store::OutputFiles files(scratch / ".");
    auto others = write_other_files(run_, options_, [&](const std::string& name) -> store::File& {
      return files.create(name);
    });
    for (const store::WrittenFile& file : others) {
      place_.put_file(scratch / file.name, file.name, owner_, memory_of_parts(options_.resources),
                      [this] { exec::check_cancelled(options_.resources.cancel); });
    }
    return others;
  }

  void end_share(TransformReport& report) {
    ShareRecord record{*options_.share,
                       identity_.text(),
                       std::ssize(run_.moves),
                       {},
                       manifest_head(run_.source, run_.target, run_.plan)};
    if (leads()) record.others = send_other_files();
    if (options_.sha256) {
      for (format::FileRecord& file : record.manifest.files) file.sha256 = kUnknownSha256;
    }
    TransformShare& moved = report.share.emplace();
    moved.share = *options_.share;
    for (size_t t = 0; t < copied_.size(); ++t) {
      if (!is_mine_[t]) continue;
      check_written(t);
      auto& tensor = record.manifest.tensors.emplace_back(
          tensor_record(run_.source, run_.target, run_.plan, t, copied_[t]));
      ++moved.tensors;
      for (const format::ShardRecord& shard : tensor.shards) moved.bytes += shard.bytes;
    }
    journal_.commit();
    put_share_record(place_, identity_.id(), record);
    report.output = place_.prefix();
  }

  /// Throws kInternal for a tensor of the share that the store does not have wholly.
  void check_written(size_t t) const {
    if (is_complete(run_, t, copied_[t]) && is_durable(t)) return;
    throw Error(ErrorCode::kInternal, "a tensor of the share was not wholly written")
        .tensor(run_.moves[t].name)
        .help("please report this with the command line that led to it");
  }

  /// After a failure: keeps what is worth it for a later run, else ends the uploads and deletes
  /// what was sent. A whole output stays, since it may be published already: the failed request may
  /// have deleted the mark. A prefix that is another run's by now stays as it is. Never throws.
  void leave(Error& error, const std::optional<std::string>& next) noexcept {
    try {
      if (is_whole_) {
        if (!next) error.resumable();
        // Without a mark the output is published, this one or that of another run.
        if (next && next->empty()) place_.discard(identity_.id());
        return;
      }
      if ((!next && keeps(error)) || !is_marked_) return;
      const auto table = place_.uploads(identity_.id());
      const bool is_listed = table && table->has_same_uploads(table_);
      const bool is_continued = next && next->starts_with(identity_.id()) && is_listed;
      if (is_continued) return;
      if (output_) output_->abort();
      // Another run of the same job may have begun meanwhile; it has its own uploads.
      if (output_ && table && !is_listed) return;
      if (next) return place_.discard(identity_.id());
      place_.discard(identity_.id());
      if (!is_replaced_) place_.remove(place_.look().names);
      place_.publish(identity_.id(), owner_);
    } catch (const std::exception&) {
      // The mark stays: readers refuse the prefix, and the next run discards what is there.
    }
  }

  /// True if what was sent stays for a later run, and says so in the error.
  bool keeps(Error& error) {
    if (options_.share) {
      if (output_) commit();
      if (leaves_data_alone(error.code())) error.resumable();
      return true;
    }
    if (!output_ || !leaves_data_alone(error.code())) return false;
    commit();
    i64 bytes = journal_.listed_bytes();
    for (const auto& [t, copied] : finished_) {
      bytes += byte_size(run_.moves[t].dtype, run_.moves[t].shape).value_or(0);
    }
    if (bytes < std::max<i64>(options_.worth_keeping, 1)) return false;
    error.resumable().note("kept",
                           fmt::format("{}, below {}", format_bytes(bytes), place_.prefix()));
    return true;
  }

  /// Lists finished tensors. Those that cannot be listed count as not finished.
  void commit() noexcept {
    try {
      journal_.commit();
    } catch (const std::exception&) {
    }
  }

  const WriteRun& run_;
  const WriteOptions& options_;
  const std::vector<bool>& is_mine_;
  RunIdentity identity_;
  std::string owner_;
  bool is_marked_ = false;
  bool is_replaced_ = false;  ///< an earlier output is still there
  StorePlace place_;
  std::vector<exec::SourceFile> sources_;
  StoreCopying copying_;
  UploadTable table_;
  std::optional<PartedOutput> output_;
  StoreJournal journal_;
  exec::FinishedTensors finished_;  ///< by earlier processes
  std::vector<exec::CopiedTensor> copied_;
  bool is_whole_ = false;  ///< all objects are there, the manifest, too
};

}  // namespace

bool can_stream(const TargetLayout& target) {
  return std::ranges::none_of(target.tensors,
                              [](const TargetTensor& tensor) { return tensor.fills != nullptr; });
}

void tidy_up(const WriteRun& run, const WriteOptions& options) {
  const StorePlace place(options.output);
  const std::string id = run_identity(run.source, run.target, run.plan).id();
  const StorePlace::Found found = place.look();
  if (found.is_marked()) {
    const std::string owner = owner_of(id, options);
    if (place.owner() != owner) place.mark(owner);
    return place.publish(id, owner);
  }
  // A share that ran twice may have told of itself after the other had published.
  if (std::ranges::find(found.runs, id) != found.runs.end()) place.discard(id);
}

namespace {

/// Publishes the output if no share is missing. A failure, such as that of one of two processes
/// that publish at once, leaves the record of the share: running it again does the rest.
LastShare finish_if_last_share(const WriteOptions& options, const std::string& id) {
  const FinishOptions finish{options.output, options.force, false, options.resources};
  try {
    return finish_on_store_if_last(finish, id, options.share->of);
  } catch (Error& error) {
    if (leaves_data_alone(error.code())) error.resumable();
    throw;
  }
}

}  // namespace

void run_to_store(const WriteRun& run, const WriteOptions& options,
                  const std::vector<bool>& is_mine, bool compare_replicas,
                  TransformReport& report) {
  StoreRun store_run(run, options, is_mine);
  store_run.go(compare_replicas, report);
  if (!options.share) return;
  const LastShare last = finish_if_last_share(options, store_run.identity().id());
  if (last.published) {
    try {
      tidy_up(run, options);
    } catch (const Error&) {
      // The output is whole. What is left was written by a share that ran twice, which tidies up.
    }
  }
  report.share->published = last.published;
  report.share->missing = last.missing;
}

}  // namespace shardtool::api
