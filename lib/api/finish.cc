#include "lib/api/finish.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <utility>

#include "lib/api/transfer/joined_shares.h"
#include "lib/api/transfer/output_checks.h"
#include "lib/api/transfer/run_identity.h"
#include "lib/api/transfer/share_record.h"
#include "lib/api/transfer/store/finish.h"
#include "lib/api/transfer/write_files.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/checkpoint.h"
#include "lib/store/local/output_folder.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;

/// Id of the run that has records of shares; nullopt if none has. Throws kShareMissing if shares
/// have begun and none has ended.
std::optional<std::string> run_with_records(const store::OutputClaim& claim) {
  std::optional<std::string> begun;
  for (const std::string& id : claim.leftovers()) {
    const std::string folder = store::hidden_folder(claim.place(), id);
    if (!store::identity_at(folder)) continue;
    store::check_own_folder(folder);
    if (!ended_shares(claim.place(), id).empty()) return id;
    begun = folder;
  }
  if (!begun || claim.place().found == store::OutputPlace::Found::kContent) return std::nullopt;
  throw Error(ErrorCode::kShareMissing, "no share of this output has ended").at({*begun, 0, 0, {}});
}

ShareRecord read_record(const store::OutputPlace& place, const std::string& id,
                        const Share& share) {
  const std::string path = store::hidden_record(place, id, share.number, share.of);
  const auto text = store::read_text(store::open_own(path), std::numeric_limits<i64>::max());
  ShareRecord record = parse_share_record(text, path);
  if (record.share == share && parse_run_identity(record.run).id() == id) return record;
  throw Error(ErrorCode::kOtherRun, "the record of a share is of another run")
      .at({path, 0, 0, {}})
      .help(fmt::format("run share {} again", format_share(share)));
}

/// Opens a file that shares have written. Throws kFileMissing unless it has its size.
void take_over(const store::WrittenFile& file, store::OutputFolder& folder) {
  require_written(file, folder.working_path());
  folder.create_or_open(file.name);
}

FinishReport report_of(const format::Manifest& manifest, const std::string& output) {
  FinishReport report;
  report.output = output;
  report.tensors = std::ssize(manifest.tensors);
  report.files = std::ssize(manifest.files);
  for (const format::FileRecord& file : manifest.files) report.bytes += file.bytes;
  return report;
}

FinishReport look_at_published(const FinishOptions& options) {
  const auto text =
      fs::exists(options.output) ? format::manifest_text(options.output) : std::nullopt;
  if (!text) {
    throw Error(ErrorCode::kFileMissing, "there is neither an output nor a share of one")
        .at({options.output, 0, 0, {}})
        .help("write the shares first: shardtool split SRC -o FOLDER ... --share 0/8, and so on");
  }
  const auto manifest = format::parse_manifest(*text, options.output + "/" + format::kManifestName);
  FinishReport report = report_of(manifest, options.output);
  report.was_complete = true;
  require_files(manifest, options.output);
  if (options.verify) {
    report.bytes_verified = verify_shards(manifest, options.output, options.resources);
  }
  return report;
}

FinishReport publish(const FinishOptions& options, store::OutputClaim claim, const std::string& id,
                     int shares) {
  const store::OutputPlace place = claim.place();
  JoinedShares joined =
      join_shares(shares, [&](const Share& share) { return read_record(place, id, share); });
  format::Manifest& manifest = joined.manifest;
  store::OutputFolder folder(std::move(claim), id, store::Leftover::kContinue);
  std::vector<store::WrittenFile> written = joined.others;
  for (const format::FileRecord& file : manifest.files) written.push_back({file.name, file.bytes});
  for (const store::WrittenFile& file : written) take_over(file, folder);
  FinishReport report = report_of(manifest, options.output);
  report.shares = shares;
  if (!manifest.files.empty() && !manifest.files.front().sha256.empty()) {
    add_file_hashes(manifest, folder.working_path(), options.resources);
  }
  const auto record = [&](size_t t) { return manifest.tensors[t]; };
  written.push_back(write_manifest(manifest, manifest.tensors.size(), record,
                                   folder.create(format::kManifestName), exec::IoMode::kBuffered));
  format::open_checkpoint(folder.working_path());  // compares the headers with the manifest
  if (options.verify) {
    report.bytes_verified = verify_shards(manifest, folder.working_path(), options.resources);
  } else {
    format::Manifest filled;
    filled.files = manifest.files;
    std::ranges::copy_if(manifest.tensors, std::back_inserter(filled.tensors),
                         [&](const auto& tensor) { return joined.filled.contains(tensor.name); });
    verify_shards(filled, folder.working_path(), options.resources);
  }
  const std::string left = folder.publish(written);
  if (!left.empty()) report.warnings.push_back(undeleted_text(left));
  return report;
}

/// Publishes from the records of so many shares; nullopt: of as many as there are records of.
FinishReport finish_shares(const FinishOptions& options, std::optional<int> shares) {
  store::OutputClaim claim(options.output, store::Existing::kReplace);
  const auto id = run_with_records(claim);
  if (!id) return look_at_published(options);
  const std::vector<Share> ended = ended_shares(claim.place(), *id);
  if (!shares) shares = shares_of_records(ended);
  check_ended(ended, *shares, store::hidden_folder(claim.place(), *id));
  if (claim.place().found == store::OutputPlace::Found::kContent) {
    if (!options.force) throw store::output_exists(claim.place().path());
    check_replaceable(options.output);
  }
  return publish(options, std::move(claim), *id, *shares);
}

}  // namespace

FinishReport finish(const FinishOptions& options) {
  return store::is_remote(options.output) ? finish_on_store(options)
                                          : finish_shares(options, std::nullopt);
}

LastShare finish_if_last(const FinishOptions& options, const std::string& id, int shares) {
  const store::OutputPlace place = store::look_at_output(options.output);
  const std::string folder = store::hidden_folder(place, id);
  LastShare last;
  try {
    last.missing = missing_of(ended_shares(place, id), shares);
    if (last.missing.empty()) last.bytes_verified = finish_shares(options, shares).bytes_verified;
    last.published = last.missing.empty();
  } catch (const Error& error) {
    const bool is_gone = !store::identity_at(folder);  // another process has published it
    if (!is_gone && error.code() != ErrorCode::kOutputLocked) throw;
    last.published = is_gone;
  }
  return last;
}

}  // namespace shardtool::api
