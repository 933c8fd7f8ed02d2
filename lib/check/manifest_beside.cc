#include "lib/check/manifest_beside.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/format/manifest/manifest_against_headers.h"
#include "lib/index/holder_set_pool.h"
#include "lib/store/reader.h"

namespace shardtool::check {
namespace {

using format::Checkpoint;
using format::Manifest;
using format::TensorRecord;

/// Record with only the shard in this file, as file 0.
TensorRecord only_shard(const TensorRecord& record, size_t shard, index::HolderSetPool& pool) {
  TensorRecord only;
  only.name = record.name;
  only.stored = record.stored_on.empty() ? record.stored : record.stored_on[shard];
  only.dtype = record.dtype;
  only.shape = record.shape;
  only.cut = record.cut;
  only.digest = record.digest;
  only.shards.push_back(record.shards[shard]);
  only.shards.front().file = 0;
  only.holders = pool.of(record.shape, {record.holders->region(static_cast<int>(shard))});
  if (!record.shifts.empty()) only.shifts.push_back(record.shifts[shard]);
  return only;
}

/// Part of a manifest about one of its files.
Manifest about_file(const Manifest& all, int file) {
  Manifest one;
  one.tool_version = all.tool_version;
  one.source = all.source;
  one.mesh = all.mesh;
  one.layout = all.layout;
  one.mapping = all.mapping;
  one.constants = all.constants;
  one.files.push_back(all.files[static_cast<size_t>(file)]);
  for (const format::RankRecord& rank : all.ranks) {
    if (std::ranges::find(rank.files, file) == rank.files.end()) continue;
    one.ranks.push_back({rank.rank, rank.coordinate, {0}});
  }
  index::HolderSetPool pool;
  for (const TensorRecord& tensor : all.tensors) {
    for (size_t s = 0; s < tensor.shards.size(); ++s) {
      if (tensor.shards[s].file == file) one.tensors.push_back(only_shard(tensor, s, pool));
    }
  }
  return one;
}

}  // namespace

void ManifestsBeside::read(const std::string& folder, ContainerProblems& problems) {
  if (folder == folder_) return;
  folder_ = folder;
  manifest_.reset();
  const std::string path = path_in(folder, format::kManifestName);
  try {
    if (auto text = format::manifest_text(folder)) {
      manifest_ = std::make_shared<const Manifest>(format::parse_manifest(*std::move(text), path));
    }
  } catch (const Error& error) {
    problems.note({format::ProblemKind::kManifestInvalid, error, format::kManifestName});
  }
}

void ManifestsBeside::add_to(Checkpoint& opened, ContainerProblems& problems, Findings& findings) {
  if (opened.files.size() != 1 || store::is_folder(opened.path)) return;
  const std::string folder = opened.folder();
  read(folder, problems);
  if (!manifest_) return;
  const std::string& name = opened.files.front().name;
  const auto found = std::ranges::find(manifest_->files, name, &format::FileRecord::name);
  if (found == manifest_->files.end()) {
    findings.add({.rule = CheckRule::kExtraFile,
                  .message = "the manifest beside the file does not name it",
                  .file = path_in(folder, name),
                  .fix = "remove it, or check it in a folder of its own"});
    return;
  }
  opened.manifest = about_file(*manifest_, static_cast<int>(found - manifest_->files.begin()));
  const format::ProblemSink report = [&](format::Problem problem) { problems.note(problem); };
  format::check_files(*opened.manifest, folder, report);
  format::check_against_headers(opened, report);
}

}  // namespace shardtool::check
