#include "lib/api/finish.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>

#include "lib/api/transfer/output_checks.h"
#include "lib/api/transfer/run_identity.h"
#include "lib/api/transfer/share_record.h"
#include "lib/api/transfer/write_files.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/checkpoint.h"
#include "lib/store/local/output_folder.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNamedShares = 16;

/// Manifest and other files of an output, from the records of all shares.
struct Joined {
  format::Manifest manifest;
  std::vector<store::WrittenFile> others;
};

/// "3, 5 and 2 more".
std::string numbers_text(const std::vector<int>& numbers) {
  const auto named = std::min(numbers.size(), kNamedShares);
  const auto text = fmt::format(
      "{}", fmt::join(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(named), ", "));
  return named == numbers.size() ? text
                                 : fmt::format("{} and {} more", text, numbers.size() - named);
}

/// Number of shares that the records of a run are of: one that is complete, or else the one with
/// the most records.
int shares_of_records(const store::OutputPlace& place, const std::string& id) {
  std::map<int, int> records;
  for (const Share& share : ended_shares(place, id)) ++records[share.of];
  const auto most = std::ranges::max_element(records, {}, [](const auto& entry) {
    const auto& [of, ended] = entry;
    return std::pair(ended == of, ended);
  });
  return most->first;
}

/// Throws kShareMissing unless all of so many shares have ended.
void check_ended(const store::OutputPlace& place, const std::string& id, int shares) {
  const std::vector<int> missing = missing_shares(place, id, shares);
  if (missing.empty()) return;
  throw Error(ErrorCode::kShareMissing, fmt::format("{} of {} shares have not ended: {}",
                                                    missing.size(), shares, numbers_text(missing)))
      .at({store::hidden_folder(place, id), 0, 0, {}})
      .help(fmt::format("run each of them with the command line of the others and its number, such "
                        "as --share {}",
                        format_share(Share{missing.front(), shares})));
}

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

std::string head_text(format::Manifest& manifest) {
  std::vector<format::TensorRecord> tensors;
  tensors.swap(manifest.tensors);
  std::string text = to_json(manifest);
  tensors.swap(manifest.tensors);
  return text;
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

void check_all_tensors(const format::Manifest& manifest, i64 expected) {
  const auto& tensors = manifest.tensors;
  const auto twice = std::ranges::adjacent_find(tensors, {}, &format::TensorRecord::name);
  if (twice == tensors.end() && std::ssize(tensors) == expected) return;
  throw Error(ErrorCode::kInternal, "the shares do not hold every tensor once")
      .note("expected", plural(expected, "tensor"))
      .note("found", plural(std::ssize(tensors), "tensor"))
      .help("please report this with the command lines of the shares");
}

Joined join_records(const store::OutputPlace& place, const std::string& id, int shares) {
  Joined joined;
  std::string head;
  i64 expected = 0;
  for (int number = 0; number < shares; ++number) {
    ShareRecord record = read_record(place, id, {number, shares});
    std::string own_head = head_text(record.manifest);
    joined.others.insert(joined.others.end(), record.others.begin(), record.others.end());
    if (number == 0) {
      head = std::move(own_head);
      expected = record.tensors;
      joined.manifest = std::move(record.manifest);
      continue;
    }
    if (own_head != head) {
      throw Error(ErrorCode::kOtherRun,
                  fmt::format("share {} was run with other options than share {}",
                              format_share(record.share), format_share(Share{0, shares})))
          .help("run one of them again, with the command line of the others");
    }
    std::ranges::move(record.manifest.tensors, std::back_inserter(joined.manifest.tensors));
  }
  std::ranges::sort(joined.manifest.tensors, {}, &format::TensorRecord::name);
  check_all_tensors(joined.manifest, expected);
  return joined;
}

void check_tied_records(const format::Manifest& manifest) {
  const auto& tensors = manifest.tensors;
  check_tied(manifest.tied, [&](const std::string& name) -> std::optional<std::uint64_t> {
    const auto found = std::ranges::lower_bound(tensors, name, {}, &format::TensorRecord::name);
    if (found == tensors.end() || found->name != name) return std::nullopt;
    return found->casts.empty() ? found->digest : found->casts.back().digest;
  });
}

/// Opens a file that shares have written. Throws kFileMissing unless it has its size.
void take_over(const store::WrittenFile& file, store::OutputFolder& folder) {
  const std::string path = folder.working_path() + "/" + file.name;
  const auto found = store::identity_at(path);
  if (found && found->size == file.bytes) {
    folder.create_or_open(file.name);
    return;
  }
  throw Error(ErrorCode::kFileMissing, "a file that the shares have written is gone or cut off")
      .at({path, 0, 0, {}})
      .help(fmt::format("delete '{}' and run all shares again", folder.working_path()));
}

/// Reads every shard of an output back. Returns the bytes read. Throws kDataMismatch.
i64 verify_shards(const format::Manifest& manifest, const std::string& folder,
                  const exec::Resources& resources) {
  std::vector<exec::SourceFile> files;
  for (const format::FileRecord& file : manifest.files)
    files.emplace_back(folder + "/" + file.name);
  std::vector<exec::WrittenRange> ranges;
  std::vector<const format::TensorRecord*> tensor_of;
  i64 bytes = 0;
  for (const format::TensorRecord& tensor : manifest.tensors) {
    for (const format::ShardRecord& shard : tensor.shards) {
      ranges.push_back({shard.file, shard.offset, shard.bytes, shard.xxh3.value()});
      tensor_of.push_back(&tensor);
      bytes += shard.bytes;
    }
  }
  const std::vector<bool> intact = exec::read_back(ranges, files, resources);
  const auto damaged = std::ranges::find(intact, false) - intact.begin();
  if (damaged == std::ssize(intact)) return bytes;
  const auto at = static_cast<size_t>(damaged);
  throw Error(ErrorCode::kDataMismatch, "a shard is not what was written")
      .tensor(tensor_of[at]->name)
      .at({files[static_cast<size_t>(ranges[at].file)].file().path(), 0, 0, {}})
      .help("run the shares again: each of them looks for damage to what it wrote");
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
  if (options.verify) {
    report.bytes_verified = verify_shards(manifest, options.output, options.resources);
  }
  return report;
}

FinishReport publish(const FinishOptions& options, store::OutputClaim claim, const std::string& id,
                     int shares) {
  Joined joined = join_records(claim.place(), id, shares);
  format::Manifest& manifest = joined.manifest;
  check_tied_records(manifest);
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
  written.push_back(
      write_manifest(manifest, manifest.tensors.size(), record, folder, exec::IoMode::kBuffered));
  format::open_checkpoint(folder.working_path());  // compares the headers with the manifest
  if (options.verify) {
    report.bytes_verified = verify_shards(manifest, folder.working_path(), options.resources);
  }
  folder.publish(written);
  return report;
}

/// Publishes from the records of so many shares; nullopt: of as many as there are records of.
FinishReport finish_shares(const FinishOptions& options, std::optional<int> shares) {
  store::OutputClaim claim(options.output, store::Existing::kReplace);
  const auto id = run_with_records(claim);
  if (!id) return look_at_published(options);
  if (!shares) shares = shares_of_records(claim.place(), *id);
  check_ended(claim.place(), *id, *shares);
  if (claim.place().found == store::OutputPlace::Found::kContent) {
    if (!options.force) throw store::output_exists(claim.place().path());
    check_replaceable(options.output);
  }
  return publish(options, std::move(claim), *id, *shares);
}

}  // namespace

FinishReport finish(const FinishOptions& options) {
  if (store::is_remote(options.output)) {
    throw Error(ErrorCode::kUsage, "shares work for outputs on a file system only")
        .note("output", options.output);
  }
  return finish_shares(options, std::nullopt);
}

LastShare finish_if_last(const FinishOptions& options, const std::string& id, int shares) {
  const store::OutputPlace place = store::look_at_output(options.output);
  const std::string folder = store::hidden_folder(place, id);
  LastShare last;
  try {
    last.missing = missing_shares(place, id, shares);
    if (last.missing.empty()) finish_shares(options, shares);
    last.published = last.missing.empty();
  } catch (const Error& error) {
    const bool is_gone = !store::identity_at(folder);  // another process has published it
    if (!is_gone && error.code() != ErrorCode::kOutputLocked) throw;
    last.published = is_gone;
  }
  return last;
}

}  // namespace shardtool::api
