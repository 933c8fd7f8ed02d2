#include "lib/api/transfer/sources/foreign_source.h"

#include <filesystem>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/check/container.h"
#include "lib/format/folder_listing.h"
#include "lib/mapping/resolve/read_parts.h"
#include "lib/store/reader.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;

bool has_weights(const std::string& folder) {
  const format::FolderListing listing = format::list_folder(folder);
  return !listing.weights.empty() || !listing.indices.empty() || !listing.rank_folders.empty();
}

}  // namespace

std::vector<std::string> with_rank_folders(const std::vector<std::string>& locations) {
  std::vector<std::string> all;
  for (const std::string& location : locations) {
    const auto folders = store::is_folder(location) && !has_weights(location)
                             ? check::rank_folders(location)
                             : std::vector<std::string>{};
    if (folders.empty()) {
      all.push_back(location);
    } else {
      all.insert(all.end(), folders.begin(), folders.end());
    }
  }
  return all;
}

void refuse_fused(const check::ForeignShards& shards, const mapping::Mapping& mapping) {
  const mapping::ReadRules rules(mapping);
  for (const check::RankTensor& tensor : shards.tensors) {
    const auto match = rules.find(tensor.spec.name, tensor.spec.shape.size());
    if (!match) continue;
    throw Error(ErrorCode::kUnsupported,
                "the tensors of files of ranks are not taken apart by \"read\"")
        .at(match->rule->place)
        .tensor(quote_for_message(tensor.spec.name))
        .help(
            "give a mapping without \"read\" whose rules say how the ranks cut this tensor; "
            "sections side by side are \"dims\": [\"heads*head_dim + kv_heads*head_dim\", null]");
  }
}

std::optional<check::RankName> rank_of_folder(const format::Checkpoint& part) {
  return check::parse_rank_name(fs::path(part.path).filename().string());
}

std::optional<check::ForeignShards> as_foreign_shards(
    const std::vector<format::Checkpoint>& parts) {
  check::ForeignShards shards;
  int first_file = 0;
  for (const format::Checkpoint& part : parts) {
    if (!part.chunked.empty()) return std::nullopt;  // the chunks say where they belong
    const auto folder_rank = parts.size() > 1 ? rank_of_folder(part) : std::nullopt;
    std::vector<i64> ranks;
    for (const auto& file : part.files) {
      const auto name = folder_rank ? folder_rank : check::parse_rank_name(file.name);
      if (!name) return std::nullopt;
      ranks.push_back(name->rank);
      shards.files.push_back({*name, check::path_in(part.folder(), file.name),
                              first_file + static_cast<int>(ranks.size()) - 1});
    }
    for (const auto& tensor : part.tensors) {
      shards.tensors.push_back({{tensor.name, tensor.dtype, tensor.shape},
                                ranks[static_cast<size_t>(tensor.file)],
                                {first_file + tensor.file, tensor.offset}});
    }
    first_file += static_cast<int>(part.files.size());
  }
  if (shards.files.empty()) return std::nullopt;
  return shards;
}

}  // namespace shardtool::api
