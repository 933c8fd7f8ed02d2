#include "lib/api/finish.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "lib/api/transfer/joined_shares.h"
#include "lib/api/transfer/output_checks.h"
#include "lib/api/transfer/run_identity.h"
#include "lib/api/transfer/share_record.h"
#include "lib/api/transfer/store/owned_prefix.h"
#include "lib/api/transfer/write_files.h"
#include "lib/api/verify.h"
#include "lib/base/error.h"
#include "lib/base/shell.h"
#include "lib/exec/files/range_hash.h"
#include "lib/format/checkpoint.h"
#include "lib/store/local/output_folder.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

constexpr i64 kAnyBytes = std::numeric_limits<i64>::max();

/// Records of a manifest that outlives the result.
RecordOf recorded_tensors(const format::Manifest& manifest) {
  return [&manifest](size_t tensor) { return manifest.tensors[tensor]; };
}

/// Output of shares in a folder.
class FolderOutput {
 public:
  explicit FolderOutput(std::string output)
      : path_(std::move(output)), place_(store::look_at_output(path_)) {}

  const std::string& path() const { return path_; }
  /// Looks at what is there, and keeps other processes from publishing it. Deletes what is left of
  /// runs that were killed after they had published.
  void claim() {
    claim_.emplace(path_, store::Existing::kReplace);
    place_ = claim_->place();
    for (const std::string& id : store::hidden_ids(place_)) {
      if (!store::identity_at(folder(id))) claim_->discard(id);
    }
  }
  /// Ids of the runs that have begun to write the output.
  std::vector<std::string> runs() const {
    std::vector<std::string> ids = store::hidden_ids(place_);
    std::erase_if(ids, [&](const std::string& id) { return !store::identity_at(folder(id)); });
    for (const std::string& id : ids) store::check_own_folder(folder(id));
    return ids;
  }
  /// True if a run has begun, and there is no output that readers take.
  bool is_unfinished() const { return !has_content() && !runs().empty(); }
  /// True if the output is there, and nothing of this run is left.
  bool is_published(const std::string& id) const {
    const bool has_manifest = store::exists(path_ + "/" + format::kManifestName);
    return has_manifest && !store::identity_at(folder(id));
  }
  std::vector<Share> ended(const std::string& id) const { return ended_shares(place_, id); }
  std::string record_path(const std::string& id, const Share& share) const {
    return store::hidden_record(place_, id, share.number, share.of);
  }
  /// Folder with the files of a run until they are published.
  std::string folder(const std::string& id) const { return store::hidden_folder(place_, id); }

  /// Completes the files of the manifest, and adds the hashes that no share could take. Throws
  /// kFileMissing for a file that is not whole, and kOutputExists if the output may not be
  /// replaced.
  void complete(const std::string& id, JoinedShares& joined, const FinishOptions& options) {
    if (has_content()) {
      if (!options.force) throw store::output_exists(place_.path());
      check_replaceable(path_);
    }
    files_ = joined.others;
    for (const format::FileRecord& file : joined.manifest.files) {
      files_.push_back({file.name, file.bytes});
    }
    folder_.emplace(*std::exchange(claim_, std::nullopt), id, store::Leftover::kContinue);
    for (const store::WrittenFile& file : files_) {
      require_written(file, folder(id));
      folder_->create_or_open(file.name);
    }
  }
  /// Publishes the output. Returns the path of one that was replaced and could not be deleted, or
  /// "".
  std::string publish(const std::string&, const format::Manifest& manifest) {
    files_.push_back(write_manifest(manifest, manifest.tensors.size(), recorded_tensors(manifest),
                                    folder_->create(format::kManifestName),
                                    exec::IoMode::kBuffered));
    return folder_->publish(files_);
  }

 private:
  bool has_content() const { return place_.found == store::OutputPlace::Found::kContent; }

  std::string path_;
  store::OutputPlace place_;
  std::optional<store::OutputClaim> claim_;    ///< until the files are complete
  std::optional<store::OutputFolder> folder_;  ///< since then
  std::vector<store::WrittenFile> files_;
};

/// Same below a prefix of an object store, which has no locks.
class PrefixOutput {
 public:
  explicit PrefixOutput(const std::string& output) : place_(output) {}

  const std::string& path() const { return place_.prefix(); }
  void claim() { found_ = place_.look(); }
  std::vector<std::string> runs() const {
    // A share that ran twice may have told of itself after the other had published.
    return found_.is_published() ? std::vector<std::string>() : found_.runs;
  }
  bool is_unfinished() const { return found_.is_unfinished(); }
  bool is_published(const std::string&) const { return place_.look().is_published(); }

  std::vector<Share> ended(const std::string& id) const { return place_.ended_shares(id); }
  std::string record_path(const std::string& id, const Share& share) const {
    return place_.record(id, share).text();
  }
  std::string folder(const std::string&) const { return path(); }

  void complete(const std::string& id, JoinedShares& joined, const FinishOptions& options) {
    const auto table = place_.uploads(id);
    if (!table) throw no_uploads(place_);
    store::s3::PartedOutput objects(store::s3::shared_client(), table->objects,
                                    place_.fragments(id), options.resources.store_memory / 2);
    OwnedPrefix(place_, id).require();
    const Former former = found_.mark.value_or(Former::kNothing);
    if (!take_up_parts(objects, former)) throw no_uploads(place_);
    if (!objects.gather()) {
      throw Error(ErrorCode::kFileMissing, "bytes that the shares have written are gone")
          .at({path(), 0, 0, {}})
          .help("run all shares again: each of them writes what is missing of its own");
    }
    objects.complete();
    store::forget_listing(path());
    for (format::TensorRecord& tensor : joined.manifest.tensors) {
      if (!tensor.is_unread) add_hashes(tensor, joined.manifest);
    }
  }
  std::string publish(const std::string& id, const format::Manifest& manifest) {
    const OwnedPrefix prefix(place_, id);
    prefix.put_manifest(manifest, manifest.tensors.size(), recorded_tensors(manifest));
    prefix.publish(id);
    return "";
  }

 private:
  /// Hashes the shards of which a share could not read the bytes back: it has recorded zeros.
  void add_hashes(format::TensorRecord& tensor, const format::Manifest& manifest) const {
    for (format::ShardRecord& shard : tensor.shards) {
      if (shard.xxh3 && *shard.xxh3 != kernels::Hash128()) continue;
      const std::string& name = manifest.files[static_cast<size_t>(shard.file)].name;
      shard.xxh3 = exec::hash_range(path() + "/" + name, shard.offset, shard.bytes);
    }
  }

  StorePlace place_;
  StorePlace::Found found_;
};

/// Id of the run that has records of shares; nullopt if none has. Throws kShareMissing if shares
/// have begun and none has ended.
template <class Output>
std::optional<std::string> run_with_records(const Output& output) {
  const std::vector<std::string> runs = output.runs();
  for (const std::string& id : runs) {
    if (!output.ended(id).empty()) return id;
  }
  if (!output.is_unfinished()) return std::nullopt;
  throw Error(ErrorCode::kShareMissing, "no share of this output has ended")
      .at({runs.empty() ? output.path() : output.folder(runs.back()), 0, 0, {}});
}

ShareRecord read_record(const std::string& path, const std::string& id, const Share& share) {
  store::forget_listing(path);
  const std::string text = store::is_remote(path)
                               ? store::read_source_text(path, kAnyBytes)
                               : store::read_text(store::open_own(path), kAnyBytes);
  ShareRecord record = parse_share_record(text, path);
  if (record.share == share && parse_run_identity(record.run).id() == id) return record;
  throw Error(ErrorCode::kOtherRun, "the record of a share is of another run")
      .at({path, 0, 0, {}})
      .help(fmt::format("run share {} again", format_share(share)));
}

/// Throws kFileMissing unless the files beside the weights are there, each with its size. On a
/// store, a process that looked before the output was marked deletes what it takes for an earlier
/// output.
void require_others(const std::vector<store::WrittenFile>& others, const std::string& folder,
                    int shares) {
  store::forget_listing(folder);
  for (const store::WrittenFile& file : others) {
    const std::string path = folder + "/" + file.name;
    if (store::size_of(path) == file.bytes) continue;
    throw Error(ErrorCode::kFileMissing, "a file that a share has written is gone or cut off")
        .at({path, 0, 0, {}})
        .help(fmt::format("run share {} again", format_share(Share{0, shares})));
  }
}

/// Compares the headers of all files, and the index, with the manifest.
void check_headers(const JoinedShares& joined, const std::string& folder) {
  std::vector<std::string> names;
  for (const store::WrittenFile& file : joined.others) names.push_back(file.name);
  std::ranges::sort(names);
  format::open_unpublished(folder, to_json(joined.manifest), names);
}

/// The manifest with the tensors only that are read back in any case.
format::Manifest filled_part(const JoinedShares& joined) {
  format::Manifest filled;
  filled.files = joined.manifest.files;
  std::ranges::copy_if(joined.manifest.tensors, std::back_inserter(filled.tensors),
                       [&](const auto& tensor) { return joined.filled.contains(tensor.name); });
  return filled;
}

FinishReport report_of(const format::Manifest& manifest, const std::string& output) {
  FinishReport report;
  report.output = output;
  report.tensors = std::ssize(manifest.tensors);
  report.files = std::ssize(manifest.files);
  for (const format::FileRecord& file : manifest.files) report.bytes += file.bytes;
  return report;
}

FinishReport look_at_published(const FinishOptions& options, const std::string& output) {
  const auto text = format::manifest_text(output);
  if (!text) {
    throw Error(ErrorCode::kFileMissing, "there is neither an output nor a share of one")
        .at({output, 0, 0, {}})
        .help(fmt::format(
            "write the shares first: shardtool split SRC -o {} ... --share 0/8, and so on",
            path_argument(output)));
  }
  const auto manifest = format::parse_manifest(*text, output + "/" + format::kManifestName);
  FinishReport report = report_of(manifest, output);
  report.was_complete = true;
  require_files(manifest, output);
  std::set<std::string> own;
  for (const format::FileRecord& file : manifest.files) own.insert(file.name);
  look_for_extra_files(output, own, options.verify, report.warnings);
  if (options.verify) report.bytes_verified = verify_shards(manifest, output, options.resources);
  return report;
}

template <class Output>
FinishReport publish(const FinishOptions& options, Output& output, const std::string& id,
                     int shares) {
  const std::string folder = output.folder(id);
  JoinedShares joined = join_shares(shares, [&](const Share& share) {
    return read_record(output.record_path(id, share), id, share);
  });
  format::Manifest& manifest = joined.manifest;
  require_others(joined.others, folder, shares);
  output.complete(id, joined, options);
  check_headers(joined, folder);
  if (!manifest.files.empty() && !manifest.files.front().sha256.empty()) {
    add_file_hashes(manifest, folder, options.resources);
  }
  FinishReport report = report_of(manifest, output.path());
  report.shares = shares;
  if (options.verify) {
    report.bytes_verified = verify_shards(manifest, folder, options.resources);
  } else {
    verify_shards(filled_part(joined), folder, options.resources);
  }
  const std::string left = output.publish(id, manifest);
  if (!left.empty()) report.warnings.push_back(undeleted_text(left));
  return report;
}

/// Publishes from the records of so many shares; nullopt: of as many as there are records of.
template <class Output>
FinishReport finish_shares(const FinishOptions& options, Output&& output,
                           std::optional<int> shares) {
  output.claim();
  const auto id = run_with_records(output);
  if (!id) return look_at_published(options, output.path());
  const std::vector<Share> ended = output.ended(*id);
  if (!shares) shares = shares_of_records(ended);
  check_ended(ended, *shares, output.folder(*id));
  return publish(options, output, *id, *shares);
}

/// Does it if no share is missing.
template <class Output>
LastShare finish_if_none_missing(const FinishOptions& options, Output&& output,
                                 const std::string& id, int shares) {
  LastShare last;
  try {
    last.missing = missing_of(output.ended(id), shares);
    if (last.missing.empty()) {
      last.bytes_verified = finish_shares(options, output, shares).bytes_verified;
      last.published = true;
      return last;
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutputLocked && !output.is_published(id)) throw;
  }
  // Another process may have published the output meanwhile, and deleted the records.
  if (output.is_published(id)) return {.published = true, .missing = {}};
  return last;
}

}  // namespace

FinishReport finish(const FinishOptions& options) {
  const std::string& output = options.output;
  return store::is_remote(output) ? finish_shares(options, PrefixOutput(output), std::nullopt)
                                  : finish_shares(options, FolderOutput(output), std::nullopt);
}

LastShare finish_if_last(const FinishOptions& options, const std::string& id, int shares) {
  const std::string& output = options.output;
  return store::is_remote(output)
             ? finish_if_none_missing(options, PrefixOutput(output), id, shares)
             : finish_if_none_missing(options, FolderOutput(output), id, shares);
}

}  // namespace shardtool::api
