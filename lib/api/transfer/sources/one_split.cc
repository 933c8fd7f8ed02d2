#include "lib/api/transfer/sources/one_split.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::api {
namespace {

using format::Checkpoint;
using format::TensorRecord;

constexpr const char* kWriteAgain =
    "one of the folders may be left from an earlier checkpoint: write it again from the checkpoint "
    "of the others";

Error not_one_split(const Checkpoint& part, const std::string& message) {
  return Error(ErrorCode::kManifestInvalid, message)
      .at({part.path + "/" + format::kManifestName, 0, 0, {}});
}

/// Size, header and sampled bytes of each file, in any order: equal for a checkpoint that was read
/// from another place. An output of all ranks has no samples.
std::vector<std::tuple<i64, std::string, std::string>> files_of_source(const Checkpoint& part,
                                                                       bool with_samples) {
  std::vector<std::tuple<i64, std::string, std::string>> files;
  for (const format::FileRecord& file : part.manifest->source) {
    files.emplace_back(file.bytes, file.header_xxh3, with_samples ? file.sampled_xxh3 : "");
  }
  std::ranges::sort(files);
  return files;
}

bool has_samples(const Checkpoint& part) {
  const auto& files = part.manifest->source;
  return !files.empty() && !files.front().sampled_xxh3.empty();
}

std::string source_text(const Checkpoint& part) {
  std::vector<std::string> files;
  for (const format::FileRecord& file : part.manifest->source) {
    if (files.size() == 2) break;
    files.push_back(fmt::format("'{}' of {} bytes with header {}", quote_for_message(file.name),
                                file.bytes, quote_for_message(file.header_xxh3)));
  }
  const size_t all = part.manifest->source.size();
  return fmt::format("{}{}", fmt::join(files, ", "),
                     files.size() < all ? fmt::format(", ... ({} files)", all) : "");
}

void check_same_source(const Checkpoint& first, const Checkpoint& part) {
  if (files_of_source(first, false) != files_of_source(part, false)) {
    throw not_one_split(part, "it was made of another checkpoint than " + first.path)
        .note("found", source_text(part))
        .note("expected", source_text(first))
        .help(kWriteAgain);
  }
  if (!has_samples(first) || !has_samples(part)) return;
  if (files_of_source(first, true) == files_of_source(part, true)) return;
  throw not_one_split(part,
                      "it was made of a checkpoint with other values than that of " + first.path)
      .note("found", "source files of the same sizes and headers, with other bytes")
      .help(kWriteAgain);
}

void check_ranks_once(std::span<const Checkpoint> parts) {
  std::set<i64> seen;
  for (const Checkpoint& part : parts) {
    for (const format::RankRecord& rank : part.manifest->ranks) {
      if (seen.insert(rank.rank).second) continue;
      throw not_one_split(part,
                          fmt::format("rank {} is in another of the given folders, too", rank.rank))
          .help("give each folder once");
    }
  }
}

/// Steps from the source's values to the stored ones: "fp8/block -> BF16 -> F16".
std::string history_text(const TensorRecord& record) {
  std::string text;
  if (record.dequantized) text += quote_for_message(record.dequantized->scheme) + " -> ";
  for (const format::CastRecord& cast : record.casts) {
    text += fmt::format("{} -> ", to_string(cast.from));
  }
  return text + std::string(to_string(record.dtype));
}

/// History of the first tensor of each type that the source has: a run casts all tensors of a type.
std::map<std::string, std::string> histories(const Checkpoint& part) {
  std::map<std::string, std::string> by_type;
  for (const TensorRecord& record : part.manifest->tensors) {
    const std::string history = history_text(record);
    by_type.try_emplace(history.substr(0, history.find(" -> ")), history);
  }
  return by_type;
}

void check_same_casts(const Checkpoint& first, const Checkpoint& part) {
  const auto expected = histories(first);
  for (const auto& [type, history] : histories(part)) {
    const auto known = expected.find(type);
    if (known == expected.end() || known->second == history) continue;
    throw not_one_split(part, "its values have other types than those of " + first.path)
        .note("found", history)
        .note("expected", known->second)
        .help("write both folders from one checkpoint with the same --dtype");
  }
}

void check_same_tensor(const TensorRecord& first, const Checkpoint& part,
                       const TensorRecord& record, const std::string& first_path) {
  const auto text = [](const TensorRecord& of) {
    return fmt::format("{} {}", history_text(of), to_string(of.shape));
  };
  if (text(first) != text(record)) {
    throw not_one_split(part, "a tensor has another type or shape than in " + first_path)
        .tensor(quote_for_message(record.name))
        .note("found", text(record))
        .note("expected", text(first))
        .help("write both folders from one checkpoint with the same options");
  }
  if (!first.digest || !record.digest || first.digest == record.digest) return;
  throw not_one_split(part, "a tensor has other values than in " + first_path)
      .tensor(quote_for_message(record.name))
      .note("found", fmt::format("digest {:016x}", *record.digest))
      .note("expected", fmt::format("digest {:016x}", *first.digest))
      .help("one of the folders may be left from an earlier checkpoint: write both again from one");
}

}  // namespace

void check_one_split(std::span<const Checkpoint> parts) {
  const Checkpoint& first = parts.front();
  for (const Checkpoint& part : parts) {
    if (!part.manifest || part.manifest->has_chunks) {
      throw Error(ErrorCode::kManifestInvalid,
                  fmt::format("{} is a whole checkpoint; only outputs of one split can be joined",
                              part.path));
    }
    if (&part == &first) continue;
    if (part.manifest->mesh != first.manifest->mesh) {
      throw not_one_split(
          part, fmt::format("the mesh is {}, but {} has {}", to_string(part.manifest->mesh),
                            first.path, to_string(first.manifest->mesh)));
    }
    check_same_source(first, part);
    check_same_casts(first, part);
  }
  check_ranks_once(parts);
}

std::vector<SplitTensor> split_tensors(std::span<const Checkpoint> parts) {
  std::vector<std::pair<const TensorRecord*, size_t>> records;
  for (size_t p = 0; p < parts.size(); ++p) {
    for (const TensorRecord& record : parts[p].manifest->tensors) records.emplace_back(&record, p);
  }
  const auto name = [](const auto& entry) -> const std::string& { return entry.first->name; };
  if (parts.size() > 1) std::ranges::stable_sort(records, {}, name);
  std::vector<SplitTensor> tensors;
  for (const auto& [record, part] : records) {
    if (tensors.empty() || tensors.back().records.front()->name != record->name) {
      tensors.emplace_back();
    } else {
      const SplitTensor& known = tensors.back();
      check_same_tensor(*known.records.front(), parts[part], *record,
                        parts[known.parts.front()].path);
    }
    tensors.back().parts.push_back(part);
    tensors.back().records.push_back(record);
  }
  return tensors;
}

std::vector<std::string> tensors_elsewhere(std::span<const Checkpoint> parts) {
  std::set<std::string_view> names;
  for (const Checkpoint& part : parts) {
    names.insert(part.manifest->elsewhere.begin(), part.manifest->elsewhere.end());
  }
  if (names.empty()) return {};
  for (const Checkpoint& part : parts) {
    for (const TensorRecord& record : part.manifest->tensors) names.erase(record.name);
  }
  return {names.begin(), names.end()};
}

}  // namespace shardtool::api
