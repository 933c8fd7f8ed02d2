#include "lib/format/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "lib/base/text.h"

namespace shardtool::format {
namespace {

bool ends_with_any(std::string_view name, std::span<const std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [name](std::string_view end) { return name.ends_with(end); });
}

using HashedName = std::pair<size_t, const std::string*>;

/// Orders names by the highest bits of their hashes; returns the ranges in which these are equal.
std::vector<std::span<HashedName>> in_buckets(std::vector<HashedName>& names) {
  const int bits = std::max(1, static_cast<int>(std::bit_width(names.size())) - 2);
  const int shift = std::numeric_limits<size_t>::digits - bits;
  std::vector<size_t> ends((size_t{1} << bits) + 1);
  for (const HashedName& name : names) ++ends[(name.first >> shift) + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<HashedName> ordered(names.size());
  for (const HashedName& name : names) ordered[ends[name.first >> shift]++] = name;
  names = std::move(ordered);
  std::vector<std::span<HashedName>> buckets;
  for (size_t begin = 0; const size_t end : std::span(ends).first(ends.size() - 1)) {
    if (end - begin > 1) buckets.push_back(std::span(names).subspan(begin, end - begin));
    begin = end;
  }
  return buckets;
}

}  // namespace

bool is_plain_file_name(std::string_view name) {
  constexpr size_t kLongestName = 255;  // NAME_MAX of Linux file systems
  const bool has_bad_byte = std::any_of(name.begin(), name.end(), [](char c) {
    return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  return !name.empty() && name.size() <= kLongestName && name.front() != '.' && !has_bad_byte;
}

bool is_inside_path(std::string_view path) {
  return std::ranges::all_of(split_at(path, "/"), is_plain_file_name);
}

bool is_safetensors_name(std::string_view name) {
  return name.ends_with(".safetensors");
}

bool is_index_name(std::string_view name) {
  return name.ends_with(".safetensors.index.json");
}

bool is_torch_name(std::string_view name) {
  constexpr auto kEnds = std::to_array<std::string_view>({".bin", ".pt", ".pth", ".ckpt"});
  return ends_with_any(name, kEnds);
}

bool is_torch_index_name(std::string_view name) {
  return name.ends_with(".bin.index.json");
}

bool is_dcp_data_name(std::string_view name) {
  return name.ends_with(".distcp");
}

bool is_foreign_weights_name(std::string_view name) {
  constexpr auto kEnds =
      std::to_array<std::string_view>({".pkl", ".gguf", ".onnx", ".onnx_data", ".h5", ".msgpack",
                                       ".msgpack.index.json", ".npz", ".npy", ".tflite", ".ot"});
  return ends_with_any(name, kEnds);
}

bool is_other_file_name(std::string_view name) {
  constexpr auto kEnds =
      std::to_array<std::string_view>({".json", ".jsonl", ".yaml", ".yml", ".txt", ".md", ".py",
                                       ".jinja", "tokenizer.model", "LICENSE", "NOTICE"});
  return ends_with_any(name, kEnds);
}

std::vector<const std::string*> find_duplicates(std::vector<const std::string*> names) {
  std::vector<HashedName> hashed;
  hashed.reserve(names.size());
  for (const std::string* name : names) hashed.emplace_back(std::hash<std::string>{}(*name), name);
  // One pass into short ranges of near hashes leaves little to sort, and names that collide on
  // purpose cost no more than a sort of all.
  std::vector<const std::string*> duplicates;
  for (const auto bucket : in_buckets(hashed)) {
    std::sort(bucket.begin(), bucket.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : *a.second < *b.second;
    });
    for (size_t i = 1; i < bucket.size(); ++i) {
      const bool repeats =
          bucket[i - 1].first == bucket[i].first && *bucket[i - 1].second == *bucket[i].second;
      const bool is_new = duplicates.empty() || *duplicates.back() != *bucket[i].second;
      if (repeats && is_new) duplicates.push_back(bucket[i].second);
    }
  }
  return duplicates;
}

const std::string* find_duplicate(std::vector<const std::string*> names) {
  const auto duplicates = find_duplicates(std::move(names));
  return duplicates.empty() ? nullptr : duplicates.front();
}

std::string list_for_message(std::span<const std::string> names) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    if (i > 0) text += ", ";
    text += quote_for_message(names[i]);
  }
  if (names.size() <= kMost) return text;
  return fmt::format("{} and {} more", text, names.size() - kMost);
}

}  // namespace shardtool::format
