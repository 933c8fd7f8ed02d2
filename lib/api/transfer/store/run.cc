#include "lib/api/transfer/store/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/api/finish.h"
#include "lib/api/transfer/lone_run.h"
#include "lib/api/transfer/output_checks.h"
#include "lib/api/transfer/output_manifest.h"
#include "lib/api/transfer/resume.h"
#include "lib/api/transfer/run_identity.h"
#include "lib/api/transfer/scratch_folder.h"
#include "lib/api/transfer/share_record.h"
#include "lib/api/transfer/shares.h"
#include "lib/api/transfer/sources/replicas.h"
#include "lib/api/transfer/store/budget.h"
#include "lib/api/transfer/store/owned_prefix.h"
#include "lib/api/transfer/store/sent_tensors.h"
#include "lib/api/verify.h"
#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/base/shell.h"
#include "lib/base/text.h"
#include "lib/store/local/output_files.h"

namespace shardtool::api {
namespace {

/// Name of the owner of an output while it is written: the same for all shares of a run.
std::string name_of_owner(const std::string& id, const WriteOptions& options) {
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
        place_(options.output),
        prefix_(place_, name_of_owner(identity_.id(), options)),
        sent_(run, options, is_mine, place_, identity_) {}

  void go(bool compare_replicas, TransformReport& report) {
    const StorePlace::Found found = place_.look();
    place_.require_writable(found, options_.force);
    if (continues()) check_only_run(found);
    prefix_.require_may_delete();
    try {
      begin(found);
      if (compare_replicas) {
        report.replicas_compared = api::compare_replicas(
            run_.source, sent_.sources(), options_.resources, options_.share.value_or(Share{}));
      }
      if (leads(options_)) {
        require_equal(run_.source, run_.target.left_out, sent_.sources(), options_.resources);
      }
      sent_.move(report);
      options_.share ? end_share(report) : complete(report);
    } catch (Error& error) {
      const Interruptible scope(interruption(), kLastPatience);
      const auto next = prefix_.next_owner();
      leave(error, next);
      // The store would tell of uploads, and not that another run has ended them.
      if (next && !options_.share) prefix_.require();
      throw;
    }
  }

  const RunIdentity& identity() const { return identity_; }

 private:
  bool continues() const { return options_.resume || options_.share; }

  /// Throws kOtherRun if another run has begun to write this output.
  void check_only_run(const StorePlace::Found& found) const {
    for (const std::string& id : found.runs) {
      if (id == identity_.id() || !found.is_marked()) continue;
      const auto table = place_.uploads(id);
      if (!table) continue;
      throw other_run(parse_run_identity(table->run), identity_, options_.share.has_value())
          .at({place_.prefix(), 0, 0, {}})
          .help(fmt::format("or delete what is there: shardtool resume --discard {}",
                            path_argument(place_.prefix())));
    }
  }

  /// Takes up the uploads of this run, or begins them.
  void begin(const StorePlace::Found& found) {
    if (continues() && found.is_marked() && takes_up(found)) return;
    if (options_.share) {
      prefix_.mark(found.former());
      // Keeps all that other shares have begun since.
      place_.discard_runs(found);
      prefix_.clear(found.names);
    } else {
      const StorePlace::Found now = prefix_.take(found);
      place_.discard_runs(now);
      if (prefix_.former() != Former::kWhole) prefix_.clear(now.names);
      if (found.is_marked()) place_.abort_all_uploads();
    }
    // Another share may have begun uploads and not told yet; what is left over ends in the end.
    sent_.begin();
    if (!options_.share) return;
    check_only_run(place_.look());  // shares of two runs that begin at once are both refused
    if (!sent_.take_up(prefix_.former())) throw no_uploads(place_);
  }

  /// Takes up what this run has sent before. Returns false if there is nothing, or if some of it is
  /// lost, for instance because a run without --resume died while it ended the uploads. A lone run
  /// can then begin anew: nobody else needs what is left. Shares rely on what the others have sent.
  bool takes_up(const StorePlace::Found& found) {
    const auto table = place_.uploads(identity_.id());
    if (!table) return false;
    prefix_.mark(*found.mark);
    const bool must_clear =
        found.mark == Former::kPart || (options_.share && found.mark == Former::kWhole);
    if (must_clear) prefix_.clear(found.names);
    sent_.open(*table);
    if (sent_.take_up(prefix_.former())) return true;
    if (options_.share) throw no_uploads(place_);
    return false;
  }

  void complete(TransformReport& report) {
    const std::vector<exec::CopiedTensor>& copied = sent_.copied();
    check_copied(run_, copied);
    sent_.gather();
    prefix_.require();
    if (prefix_.former() == Former::kWhole) {
      has_deleted_ = true;
      prefix_.clear(place_.look().names);
    }
    sent_.complete();
    if (options_.verify) {
      const auto hash = [&](size_t t, size_t h) { return std::optional(copied[t].xxh3[h]); };
      report.bytes_verified =
          verify_output(run_, place_.prefix(), hash,
                        {.tensors = std::vector<bool>(copied.size(), true)}, options_.resources);
    }
    const auto others = send_other_files();
    format::Manifest manifest = manifest_head(run_.source, run_.target, run_.plan);
    if (options_.sha256) add_file_hashes(manifest, place_.prefix(), options_.resources);
    const auto record = [&](size_t t) {
      return tensor_record(run_.source, run_.target, run_.plan, t, copied[t]);
    };
    prefix_.put_manifest(manifest, copied.size(), record);
    is_whole_ = true;
    prefix_.publish(identity_.id());
    report.written.emplace().files =
        std::ssize(run_.plan.files) + std::ssize(others) - (run_.plan.summary_name.empty() ? 0 : 1);
    report.written->copied_by_store = sent_.copied_by_store();
    report.output = place_.prefix();
  }

  /// Sends the files beside the weights, without the manifest.
  std::vector<store::WrittenFile> send_other_files() {
    const ScratchFolder scratch(std::filesystem::temp_directory_path().string(), "upload");
    auto others = write_other_files(run_, options_, scratch / ".");
    for (const store::WrittenFile& file : others) {
      prefix_.put_file(scratch / file.name, file.name, memory_of_parts(options_.resources));
    }
    return others;
  }

  void end_share(TransformReport& report) {
    ShareRecord record{*options_.share,
                       identity_.text(),
                       std::ssize(run_.moves),
                       {},
                       manifest_head(run_.source, run_.target, run_.plan)};
    if (leads(options_)) record.others = send_other_files();
    if (options_.sha256) {
      for (format::FileRecord& file : record.manifest.files) file.sha256 = kUnknownSha256;
    }
    TransformShare& moved = report.share.emplace();
    moved.share = *options_.share;
    const std::vector<exec::CopiedTensor>& copied = sent_.copied();
    for (size_t t = 0; t < copied.size(); ++t) {
      if (!is_mine_[t]) continue;
      sent_.check_sent(t);
      auto& tensor = record.manifest.tensors.emplace_back(
          tensor_record(run_.source, run_.target, run_.plan, t, copied[t]));
      ++moved.tensors;
      for (const format::ShardRecord& shard : tensor.shards) moved.bytes += shard.bytes;
    }
    sent_.commit();
    store::s3::put_object(store::s3::shared_client(), place_.record(identity_.id(), record.share),
                          to_text(record));
    report.output = place_.prefix();
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
      if ((!next && keeps(error)) || !prefix_.is_marked()) return;
      const auto table = place_.uploads(identity_.id());
      const bool is_listed = table && table->has_same_uploads(sent_.table());
      const bool is_continued = next && next->starts_with(identity_.id()) && is_listed;
      if (is_continued) return;
      sent_.abort();
      // Another run of the same job may have begun meanwhile; it has its own uploads.
      if (sent_.is_open() && table && !is_listed) return;
      if (next) return place_.discard(identity_.id());
      place_.discard(identity_.id());
      if (prefix_.former() != Former::kWhole) place_.remove(place_.look().names);
      prefix_.publish(identity_.id());
    } catch (const std::exception&) {
      // The mark stays: readers refuse the prefix, and the next run discards what is there.
    }
  }

  /// True if what was sent stays for a later run, and says so in the error.
  bool keeps(Error& error) {
    if (options_.share) {
      if (sent_.is_open()) commit();
      if (leaves_data_alone(error.code())) error.resumable();
      return true;
    }
    if (!sent_.is_open() || !leaves_data_alone(error.code())) return false;
    commit();
    const i64 bytes = sent_.listed_bytes();
    const bool is_only_one = has_deleted_ && prefix_.former() != Former::kWhole;
    if (!is_only_one && bytes < std::max<i64>(options_.worth_keeping, 1)) return false;
    error.resumable().note("kept",
                           fmt::format("{}, below {}", format_bytes(bytes), place_.prefix()));
    return true;
  }

  /// Lists finished tensors. Those that cannot be listed count as not finished.
  void commit() noexcept {
    try {
      sent_.commit();
    } catch (const std::exception&) {
    }
  }

  const WriteRun& run_;
  const WriteOptions& options_;
  const std::vector<bool>& is_mine_;
  RunIdentity identity_;
  StorePlace place_;
  OwnedPrefix prefix_;
  SentTensors sent_;
  bool has_deleted_ = false;  ///< an output that this one replaces
  bool is_whole_ = false;     ///< all objects are there, the manifest, too
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
    OwnedPrefix prefix(place, name_of_owner(id, options));
    prefix.mark(*found.mark);
    return prefix.publish(id);
  }
  // A share that ran twice may have told of itself after the other had published.
  if (std::ranges::find(found.runs, id) != found.runs.end()) place.discard(id);
}

namespace {

/// Publishes the output if no share is missing. A failure, such as that of one of two processes
/// that publish at once, leaves the record of the share: running it again does the rest.
LastShare finish_if_last_share(const WriteOptions& options, const std::string& id) {
  const FinishOptions finish{options.output, options.force, options.verify, options.resources};
  try {
    return finish_if_last(finish, id, options.share->of);
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
  if (last.bytes_verified) report.bytes_verified = last.bytes_verified;
}

}  // namespace shardtool::api
