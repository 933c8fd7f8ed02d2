#include "lib/api/transfer/store/finish.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>

#include "lib/api/transfer/joined_shares.h"
#include "lib/api/transfer/output_checks.h"
#include "lib/api/transfer/scratch_folder.h"
#include "lib/api/transfer/store/owned_prefix.h"
#include "lib/base/error.h"
#include "lib/exec/files/range_hash.h"
#include "lib/format/checkpoint.h"
#include "lib/store/local/output_claim.h"
#include "lib/store/local/output_files.h"
#include "lib/store/reader.h"
#include "lib/store/s3/upload.h"

namespace shardtool::api {
namespace {

std::string record_name(const Share& share) {
  return fmt::format("{}-of-{}.share", share.number, share.of);
}

ShareRecord read_record(const StorePlace& place, const std::string& id, const Share& share) {
  const std::string path = place.hidden(id, record_name(share)).text();
  store::look_again(path);
  ShareRecord record =
      parse_share_record(store::read_source_text(path, std::numeric_limits<i64>::max()), path);
  if (record.share == share && parse_run_identity(record.run).id() == id) return record;
  throw Error(ErrorCode::kOtherRun, "the record of a share is of another run")
      .at({path, 0, 0, {}})
      .help(fmt::format("run share {} again", format_share(share)));
}

FinishReport report_of(const format::Manifest& manifest, const StorePlace& place) {
  FinishReport report;
  report.output = place.prefix();
  report.tensors = std::ssize(manifest.tensors);
  report.files = std::ssize(manifest.files);
  for (const format::FileRecord& file : manifest.files) report.bytes += file.bytes;
  return report;
}

FinishReport look_at_published(const FinishOptions& options, const StorePlace& place) {
  const auto text = store::is_folder(place.prefix()) ? format::manifest_text(place.prefix())
                                                     : std::optional<std::string>();
  if (!text) {
    throw Error(ErrorCode::kFileMissing, "there is neither an output nor a share of one")
        .at({place.prefix(), 0, 0, {}})
        .help("write the shares first: shardtool split SRC -o s3://... --share 0/8, and so on");
  }
  const auto manifest = format::parse_manifest(*text, place.prefix() + "/" + format::kManifestName);
  FinishReport report = report_of(manifest, place);
  report.was_complete = true;
  require_files(manifest, place.prefix());
  if (options.verify) {
    report.bytes_verified = verify_shards(manifest, place.prefix(), options.resources);
  }
  return report;
}

/// Id of a run with records of shares. Throws kShareMissing if shares have begun and none has
/// ended.
std::optional<std::string> run_with_records(const StorePlace& place,
                                            const StorePlace::Found& found) {
  for (const std::string& id : found.runs) {
    if (!ended_on_store(place, id).empty()) return id;
  }
  if (found.runs.empty() || !found.is_unfinished) return std::nullopt;
  throw Error(ErrorCode::kShareMissing, "no share of this output has ended")
      .at({place.prefix(), 0, 0, {}});
}

/// Throws kFileMissing unless the store has the files beside the weights, each with its size: a
/// process that looked before the output was marked deletes what it takes for an earlier output.
void check_others(const StorePlace& place, std::span<const store::WrittenFile> others, int shares) {
  for (const store::WrittenFile& file : others) {
    const store::s3::Url url = place.url(file.name);
    const auto found = store::s3::shared_client().head(url);
    if (found && found->bytes == file.bytes) continue;
    throw Error(ErrorCode::kFileMissing, "a file that a share has written is gone or cut off")
        .at({url.text(), 0, 0, {}})
        .help(fmt::format("run share {} again", format_share(Share{0, shares})));
  }
}

FinishReport publish(const FinishOptions& options, const StorePlace& place, const std::string& id,
                     int shares) {
  JoinedShares joined =
      join_shares(shares, [&](const Share& share) { return read_record(place, id, share); });
  format::Manifest& manifest = joined.manifest;
  check_others(place, joined.others, shares);
  const auto table = place.uploads(id);
  if (!table) throw no_uploads(place);
  store::s3::PartedOutput output(store::s3::shared_client(), table->objects, place.fragments(id),
                                 options.resources.store_memory / 2);
  take_up_parts(output, place);
  const OwnedPrefix prefix(place, id);
  prefix.require();
  complete_objects(output, place, manifest);
  FinishReport report = report_of(manifest, place);
  report.shares = shares;
  if (!manifest.files.empty() && !manifest.files.front().sha256.empty()) {
    add_file_hashes(manifest, place.prefix(), options.resources);
  }
  if (options.verify) {
    report.bytes_verified = verify_shards(manifest, place.prefix(), options.resources);
  }
  put_manifest(prefix, manifest, manifest.tensors.size(),
               [&](size_t t) { return manifest.tensors[t]; });
  prefix.publish(id);
  return report;
}

/// Publishes from the records of so many shares; nullopt: of as many as there are records of.
FinishReport finish_shares(const FinishOptions& options, std::optional<int> shares) {
  const StorePlace place(options.output);
  const StorePlace::Found found = place.look();
  const auto id = run_with_records(place, found);
  if (!id) return look_at_published(options, place);
  const std::vector<Share> ended = ended_on_store(place, *id);
  if (!shares) shares = shares_of_records(ended);
  check_ended(ended, *shares, place.prefix());
  return publish(options, place, *id, *shares);
}

/// True if the prefix has a manifest and no mark.
bool is_published(const StorePlace& place) {
  const StorePlace::Found found = place.look();
  return !found.is_unfinished && found.has_manifest();
}

}  // namespace

std::vector<Share> ended_on_store(const StorePlace& place, const std::string& id) {
  std::vector<Share> ended;
  for (const std::string& name : place.hidden_names(id)) {
    if (const auto share = share_of_name(name)) ended.push_back(*share);
  }
  return ended;
}

void put_share_record(const StorePlace& place, const std::string& id, const ShareRecord& record) {
  store::s3::put_object(store::s3::shared_client(), place.hidden(id, record_name(record.share)),
                        to_text(record));
}

void put_manifest(const OwnedPrefix& prefix, const format::Manifest& head, size_t count,
                  const RecordOf& record) {
  const ScratchFolder scratch(std::filesystem::temp_directory_path().string(), "upload");
  store::OutputFiles files(scratch / ".");
  write_manifest(head, count, record, files.create(format::kManifestName), exec::IoMode::kBuffered);
  prefix.put_file(scratch / format::kManifestName, format::kManifestName,
                  store::s3::kLeastPartBytes, [] {});
}

void complete_objects(store::s3::PartedOutput& output, const StorePlace& place,
                      format::Manifest& manifest) {
  if (!output.gather()) {
    throw Error(ErrorCode::kFileMissing, "bytes that the shares have written are gone")
        .at({place.prefix(), 0, 0, {}})
        .help("run all shares again: each of them writes what is missing of its own");
  }
  output.complete();
  store::look_again(place.prefix());
  for (format::TensorRecord& tensor : manifest.tensors) {
    if (tensor.is_unread) continue;
    for (format::ShardRecord& shard : tensor.shards) {
      // A share records zeros for bytes that it could not read back.
      if (shard.xxh3 && *shard.xxh3 != kernels::Hash128()) continue;
      const std::string& name = manifest.files[static_cast<size_t>(shard.file)].name;
      shard.xxh3 = exec::hash_range(place.prefix() + "/" + name, shard.offset, shard.bytes);
    }
  }
}

FinishReport finish_on_store(const FinishOptions& options) {
  return finish_shares(options, std::nullopt);
}

LastShare finish_on_store_if_last(const FinishOptions& options, const std::string& id, int shares) {
  const StorePlace place(options.output);
  LastShare last;
  try {
    last.missing = missing_of(ended_on_store(place, id), shares);
    if (last.missing.empty()) last.bytes_verified = finish_shares(options, shares).bytes_verified;
    last.published = last.missing.empty();
  } catch (const Error&) {
    // Another process may have published the output meanwhile, and deleted the records.
    if (!is_published(place)) throw;
    last = {.published = true, .missing = {}};
  }
  if (!last.missing.empty() && is_published(place)) last = {.published = true, .missing = {}};
  return last;
}

}  // namespace shardtool::api
