#include "lib/api/transfer/sources/one_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::api {
namespace {

using format::Checkpoint;
using format::TensorRecord;

Error inconsistent(const Checkpoint& part, const std::string& message) {
  return Error(ErrorCode::kManifestInvalid, message)
      .at({part.path + "/" + format::kManifestName, 0, 0, {}});
}

void check_ranks_once(std::span<const Checkpoint> parts) {
  std::set<i64> seen;
  for (const Checkpoint& part : parts) {
    for (const format::RankRecord& rank : part.manifest->ranks) {
      if (seen.insert(rank.rank).second) continue;
      throw inconsistent(part,
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

void check_same_tensor(const TensorRecord& first, const Checkpoint& part,
                       const TensorRecord& record, const std::string& first_path) {
  const auto text = [](const TensorRecord& of) {
    return fmt::format("{} {}", history_text(of), to_string(of.shape));
  };
  if (text(first) != text(record)) {
    throw inconsistent(part, "a tensor has another type or shape than in " + first_path)
        .tensor(quote_for_message(record.name))
        .note("found", text(record))
        .note("expected", text(first))
        .help("write both folders from one checkpoint with the same options");
  }
  if (!first.digest || !record.digest || first.digest == record.digest) return;
  throw inconsistent(part, "a tensor has other values than in " + first_path)
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
      throw inconsistent(
          part, fmt::format("the mesh is {}, but {} has {}", to_string(part.manifest->mesh),
                            first.path, to_string(first.manifest->mesh)));
    }
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

}  // namespace shardtool::api
