#include "shardtool/checkpoint/shard_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "shardtool/base/error.h"
#include "shardtool/base/json_reader.h"
#include "shardtool/checkpoint/safetensors/safetensors.h"

namespace shardtool::checkpoint {
namespace {

using Metadata = std::vector<std::pair<std::string, std::string>>;

i64 bytes_of(const TensorSpec& tensor) {
  const auto bytes = byte_size(tensor.dtype, tensor.shape);
  if (!bytes) {
    throw Error(
        ErrorCode::kSubByteCut,
        fmt::format("a part of shape {} has no whole number of bytes", to_string(tensor.shape)))
        .tensor(tensor.name);
  }
  return *bytes;
}

/// The tensors, as indices, of each file: a new file begins where the next tensor does not fit.
std::vector<std::vector<size_t>> deal_out(std::span<const TensorSpec> tensors, i64 max_file_size) {
  std::vector<std::vector<size_t>> files(1);
  i64 filled = 0;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const i64 bytes = bytes_of(tensors[t]);
    if (!files.back().empty() && bytes > max_file_size - filled) {
      files.emplace_back();
      filled = 0;
    }
    files.back().push_back(t);
    filled += bytes;
  }
  const auto place_in_file = [&](size_t t) {
    return std::pair(bytes_of(tensors[t]) % kDataAlignment != 0, t);
  };
  for (auto& file : files) {
    std::sort(file.begin(), file.end(),
              [&](size_t a, size_t b) { return place_in_file(a) < place_in_file(b); });
  }
  return files;
}

/// Where in a page data must begin so that most bytes lie there as where they come from. Only
/// multiples of 8, which every reader takes.
i64 best_residue(const std::vector<size_t>& members, const std::vector<safetensors::Entry>& entries,
                 std::span<const i64> origins) {
  constexpr i64 kHeaderUnit = 8;
  std::map<i64, i64> bytes_at;
  for (size_t i = 0; i < members.size() && !origins.empty(); ++i) {
    const i64 origin = origins[members[i]];
    if (origin == kNoOrigin) continue;
    const i64 page_offset = (origin - entries[i].begin) % kDataAlignment;
    const i64 residue = page_offset < 0 ? page_offset + kDataAlignment : page_offset;
    if (residue % kHeaderUnit == 0) bytes_at[residue] += entries[i].end - entries[i].begin;
  }
  const auto most = std::max_element(bytes_at.begin(), bytes_at.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  return most == bytes_at.end() ? 0 : most->first;
}

/// Lays out one file and notes where its tensors are.
PlannedFile plan_file(std::string name, const std::vector<size_t>& members,
                      std::span<const TensorSpec> tensors, const Metadata& metadata,
                      std::span<const i64> origins, std::vector<PlannedPlace>& places) {
  std::vector<safetensors::Entry> entries;
  i64 next = 0;
  for (const size_t t : members) {
    const i64 end = next + bytes_of(tensors[t]);
    entries.push_back({tensors[t].name, tensors[t].dtype, tensors[t].shape, next, end});
    next = end;
  }
  PlannedFile file{std::move(name),
                   safetensors::write_header(entries, metadata, kDataAlignment,
                                             best_residue(members, entries, origins)),
                   0};
  const i64 data_begin = static_cast<i64>(file.header.size());
  for (size_t i = 0; i < members.size(); ++i)
    places[members[i]].offset = data_begin + entries[i].begin;
  file.size = data_begin + next;
  return file;
}

template <class NameOf>
FilePlan plan(std::span<const TensorSpec> tensors, i64 max_file_size, const Metadata& metadata,
              std::span<const i64> origins, NameOf name_of) {
  const auto members = deal_out(tensors, max_file_size);
  FilePlan plan;
  plan.places.resize(tensors.size());
  for (size_t f = 0; f < members.size(); ++f) {
    for (const size_t t : members[f]) plan.places[t].file = static_cast<int>(f);
    plan.files.push_back(
        plan_file(name_of(f, members.size()), members[f], tensors, metadata, origins, plan.places));
  }
  return plan;
}

}  // namespace

FilePlan plan_rank_files(i64 rank, std::span<const TensorSpec> shards, i64 max_file_size,
                         std::span<const i64> origins) {
  const Metadata metadata{{"format", "pt"}, {"shardtool.rank", std::to_string(rank)}};
  return plan(shards, max_file_size, metadata, origins, [rank](size_t part, size_t) {
    return fmt::format("model-rank-{}-part-{}.safetensors", rank, part);
  });
}

FilePlan plan_whole_files(std::span<const TensorSpec> tensors, i64 max_file_size,
                          std::span<const i64> origins) {
  return plan(tensors, max_file_size, {{"format", "pt"}}, origins, [](size_t file, size_t count) {
    return count == 1 ? std::string("model.safetensors")
                      : fmt::format("model-{:05}-of-{:05}.safetensors", file + 1, count);
  });
}

std::optional<std::string> index_text(const FilePlan& plan, std::span<const TensorSpec> tensors) {
  if (plan.files.size() == 1) return std::nullopt;
  std::map<std::string_view, std::string_view> file_of;
  i64 total = 0;
  for (size_t t = 0; t < tensors.size(); ++t) {
    file_of[tensors[t].name] = plan.files[static_cast<size_t>(plan.places[t].file)].name;
    total += bytes_of(tensors[t]);
  }
  std::string text = fmt::format(
      "{{\n  \"metadata\": {{\n    \"total_size\": {}\n  }},\n  \"weight_map\": {{", total);
  std::string_view separator = "\n";
  for (const auto& [tensor, file] : file_of) {
    text += fmt::format("{}    {}: {}", separator, json_quote(tensor), json_quote(file));
    separator = ",\n";
  }
  return text + "\n  }\n}\n";
}

}  // namespace shardtool::checkpoint
