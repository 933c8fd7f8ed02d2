#include "lib/api/transfer/joined_shares.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lib/api/transfer/write_files.h"
#include "lib/api/verify.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/exec/files/read_back.h"
#include "lib/store/local/file.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

constexpr size_t kNamedShares = 16;

/// "3, 5 and 2 more".
std::string numbers_text(const std::vector<int>& numbers) {
  const auto named = std::min(numbers.size(), kNamedShares);
  const auto text = fmt::format(
      "{}", fmt::join(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(named), ", "));
  return named == numbers.size() ? text
                                 : fmt::format("{} and {} more", text, numbers.size() - named);
}

std::string head_text(format::Manifest& manifest) {
  std::vector<format::TensorRecord> tensors;
  tensors.swap(manifest.tensors);
  std::string text = to_json(manifest);
  tensors.swap(manifest.tensors);
  return text;
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

void check_tied_records(const format::Manifest& manifest) {
  const auto& tensors = manifest.tensors;
  check_tied(manifest.tied, [&](const std::string& name) -> std::optional<std::uint64_t> {
    const auto found = std::ranges::lower_bound(tensors, name, {}, &format::TensorRecord::name);
    if (found == tensors.end() || found->name != name) return std::nullopt;
    return found->casts.empty() ? found->digest : found->casts.back().digest;
  });
}

}  // namespace

int shares_of_records(std::span<const Share> ended) {
  std::map<int, int> records;
  for (const Share& share : ended) ++records[share.of];
  const auto most = std::ranges::max_element(records, {}, [](const auto& entry) {
    const auto& [of, count] = entry;
    return std::pair(count == of, count);
  });
  return most->first;
}

std::vector<int> missing_of(std::span<const Share> ended, int shares) {
  std::vector<bool> has_ended(static_cast<size_t>(shares));
  for (const Share& share : ended) {
    if (share.of == shares) has_ended[static_cast<size_t>(share.number)] = true;
  }
  std::vector<int> missing;
  for (int number = 0; number < shares; ++number) {
    if (!has_ended[static_cast<size_t>(number)]) missing.push_back(number);
  }
  return missing;
}

void check_ended(std::span<const Share> ended, int shares, const std::string& place) {
  const std::vector<int> missing = missing_of(ended, shares);
  if (missing.empty()) return;
  throw Error(ErrorCode::kShareMissing, fmt::format("{} of {} shares have not ended: {}",
                                                    missing.size(), shares, numbers_text(missing)))
      .at({place, 0, 0, {}})
      .help(fmt::format("run each of them with the command line of the others and its number, such "
                        "as --share {}",
                        format_share(Share{missing.front(), shares})));
}

JoinedShares join_shares(int shares, const std::function<ShareRecord(const Share&)>& read) {
  JoinedShares joined;
  std::string head;
  i64 expected = 0;
  for (int number = 0; number < shares; ++number) {
    ShareRecord record = read({number, shares});
    std::string own_head = head_text(record.manifest);
    joined.others.insert(joined.others.end(), record.others.begin(), record.others.end());
    joined.filled.insert(record.filled.begin(), record.filled.end());
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
  check_tied_records(joined.manifest);
  return joined;
}

void require_written(const store::WrittenFile& file, const std::string& folder) {
  const std::string path = folder + "/" + file.name;
  const auto found = store::identity_at(path);
  if (found && found->size == file.bytes) return;
  throw Error(ErrorCode::kFileMissing, "a file that the shares have written is gone or cut off")
      .at({path, 0, 0, {}})
      .help(fmt::format("delete '{}' and run all shares again", folder));
}

void require_files(const format::Manifest& manifest, const std::string& output) {
  for (const format::FileRecord& file : manifest.files) {
    const std::string path = output + "/" + file.name;
    const auto bytes = store::size_of(path);
    if (bytes == file.bytes) continue;
    throw Error(ErrorCode::kFileMissing,
                bytes ? "a file of the output has another size" : "a file of the output is gone")
        .at({path, 0, 0, {}})
        .help("write the output again with --force; `shardtool check` lists all that is wrong");
  }
}

i64 verify_shards(const format::Manifest& manifest, const std::string& folder,
                  const exec::Resources& resources) {
  if (manifest.tensors.empty()) return 0;
  std::vector<exec::SourceFile> files;
  for (const format::FileRecord& file : manifest.files)
    files.emplace_back(folder + "/" + file.name);
  std::vector<exec::WrittenRange> ranges;
  std::vector<const format::TensorRecord*> tensor_of;
  i64 bytes = 0;
  for (const format::TensorRecord& tensor : manifest.tensors) {
    for (const format::ShardRecord& shard : tensor.shards) {
      if (!shard.xxh3) throw no_hash(tensor.name);
      ranges.push_back({shard.file, shard.offset, shard.bytes, *shard.xxh3});
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
      .at({folder + "/" + manifest.files[static_cast<size_t>(ranges[at].file)].name, 0, 0, {}})
      .help("run the shares again: each of them looks for damage to what it wrote");
}

}  // namespace shardtool::api
