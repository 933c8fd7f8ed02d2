#include "lib/api/transfer/sources/missing_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "lib/format/names.h"

namespace shardtool::api {
namespace {

constexpr i64 kMostRanks = 1024;

/// Name of a rank's file, with the ending that the others have.
std::string file_of(i64 rank, const layouts::EngineLayout& layout, const mesh::Mesh& mesh,
                    const check::ForeignShards& shards) {
  std::filesystem::path name = layouts::file_name(layouts::names_for(layout, mesh), mesh, rank, 0);
  name.replace_extension(std::filesystem::path(shards.files.front().shown).extension());
  return name.string();
}

}  // namespace

i64 ranks_by_names(const check::ForeignShards& shards) {
  i64 ranks = 0;
  for (const check::RankFile& file : shards.files) {
    ranks = std::max({ranks, file.name.rank + 1, file.name.ranks.value_or(0)});
  }
  return ranks;
}

i64 ranks_of(const check::ForeignShards& shards, const std::function<bool(i64 ranks)>& fits) {
  const i64 by_names = ranks_by_names(shards);
  const auto counts_ranks = [](const check::RankFile& file) { return file.name.ranks.has_value(); };
  if (std::ranges::all_of(shards.files, counts_ranks)) return by_names;
  std::set<i64> parts;
  for (const check::RankTensor& tensor : shards.tensors) {
    parts.insert(tensor.spec.shape.begin(), tensor.spec.shape.end());
  }
  std::set<i64> possible{by_names};
  for (const i64 extent : shards.extents) {
    for (const i64 part : parts) {
      const i64 ranks = part > 0 && extent % part == 0 ? extent / part : 0;
      if (ranks > by_names && ranks <= kMostRanks) possible.insert(ranks);
    }
  }
  const auto found = std::ranges::find_if(possible, fits);
  return found == possible.end() ? by_names : *found;
}

void require_all_ranks(const check::ForeignShards& shards, const layouts::EngineLayout& layout,
                       const mesh::Mesh& mesh, const std::string& location) {
  std::set<i64> present;
  for (const check::RankFile& file : shards.files) present.insert(file.name.rank);
  std::vector<std::string> missing;
  for (i64 rank = 0; rank < mesh.size(); ++rank) {
    if (!present.contains(rank)) missing.push_back(file_of(rank, layout, mesh, shards));
  }
  if (missing.empty()) return;
  throw Error(ErrorCode::kCoverage,
              fmt::format("the files of {} of {} ranks are missing", missing.size(), mesh.size()))
      .at({location, 0, 0, {}})
      .note("missing", format::list_for_message(missing))
      .help("put the files of all ranks into one folder, and give the folder");
}

}  // namespace shardtool::api
