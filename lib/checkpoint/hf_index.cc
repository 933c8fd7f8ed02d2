#include "shardtool/checkpoint/hf_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "shardtool/base/error.h"
#include "shardtool/base/json_reader.h"
#include "shardtool/base/text.h"
#include "shardtool/checkpoint/names.h"

namespace shardtool::checkpoint {
namespace {

constexpr int kMaxDepth = 16;

std::string read_file_name(JsonReader& in) {
  std::string name = in.string();
  if (!is_plain_file_name(name)) {
    throw in.error("a file name leaves the folder of the index or is hidden",
                   quote_for_message(name),
                   "a plain name such as model-00001-of-00002.safetensors");
  }
  if (!is_safetensors_name(name)) {
    throw in.error("the index names a file that is not safetensors", quote_for_message(name),
                   "a name that ends in .safetensors");
  }
  return name;
}

/// Numbers the files in the order of their names.
void number_files(HfIndex& index, const std::map<std::string, std::vector<size_t>>& users) {
  for (const auto& [file, weights] : users) {
    for (const size_t weight : weights)
      index.weights[weight].file = static_cast<int>(index.files.size());
    index.files.push_back(file);
  }
}

void read_weight_map(JsonReader& in, HfIndex& index) {
  std::map<std::string, std::vector<size_t>> users;
  in.begin_object();
  for (std::string tensor; in.next_key(tensor);) {
    users[read_file_name(in)].push_back(index.weights.size());
    index.weights.push_back({tensor, 0});
  }
  number_files(index, users);
}

void read_metadata(JsonReader& in, HfIndex& index) {
  const auto read_total = [&] {
    index.total_size = in.integer();
    if (*index.total_size < 0) {
      throw in.error("total_size is negative", std::to_string(*index.total_size), "0 or more");
    }
  };
  in.object({{"total_size", read_total, false}});
}

Error invalid(const std::string& path, const std::string& message) {
  return Error(ErrorCode::kIndexInvalid, message).at({path, 0, 0, ""});
}

}  // namespace

HfIndex parse_index(std::string_view text, const std::string& path) {
  HfIndex index;
  JsonReader in(text, {path, ErrorCode::kIndexInvalid}, kMaxDepth);
  in.object({{"weight_map", [&] { read_weight_map(in, index); }},
             {"metadata", [&] { read_metadata(in, index); }, false}});
  in.finish();
  if (index.weights.empty()) throw invalid(path, "the weight_map is empty");
  std::sort(index.weights.begin(), index.weights.end(),
            [](const auto& a, const auto& b) { return a.tensor < b.tensor; });
  const auto twice =
      std::adjacent_find(index.weights.begin(), index.weights.end(),
                         [](const auto& a, const auto& b) { return a.tensor == b.tensor; });
  if (twice != index.weights.end()) {
    throw invalid(path, "a tensor stands twice in the weight_map")
        .tensor(quote_for_message(twice->tensor));
  }
  return index;
}

std::vector<Warning> check_index(const HfIndex& index, const std::vector<StoredTensor>& tensors,
                                 const std::string& path) {
  std::map<std::string_view, int> stored;
  i64 bytes = 0;
  for (const StoredTensor& tensor : tensors) {
    stored.emplace(tensor.name, tensor.file);
    bytes += tensor.bytes;
  }
  std::vector<std::string> absent;
  for (const HfIndex::Weight& weight : index.weights) {
    const auto found = stored.find(weight.tensor);
    if (found == stored.end() || found->second != weight.file) {
      absent.push_back(
          fmt::format("{} ({})", weight.tensor, index.files[static_cast<size_t>(weight.file)]));
    } else {
      stored.erase(found);
    }
  }
  if (!absent.empty()) {
    throw invalid(path, "the index names tensors that their file does not hold")
        .note("found", list_for_message(absent))
        .help("the index and the files are of different downloads: fetch both again");
  }
  if (!stored.empty()) {
    std::vector<std::string> unlisted;
    for (const auto& [name, file] : stored) {
      unlisted.push_back(fmt::format("{} ({})", name, index.files[static_cast<size_t>(file)]));
    }
    throw invalid(path, "the files hold tensors that the index does not name")
        .note("found", list_for_message(unlisted))
        .help("the index and the files are of different downloads: fetch both again");
  }
  if (!index.total_size || *index.total_size == bytes) return {};
  return {{fmt::format("metadata.total_size says {} bytes, the tensors have {}", *index.total_size,
                       bytes),
           path}};
}

}  // namespace shardtool::checkpoint
