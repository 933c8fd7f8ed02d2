#include "lib/check/coverage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "lib/base/text.h"
#include "lib/check/container.h"
#include "lib/format/manifest/manifest_rules.h"
#include "lib/index/coverage.h"

namespace shardtool::check {
namespace {

using index::HolderSet;

/// Result for one set of holders.
struct SetCoverage {
  std::string gap;
  bool overlaps = false;
  int uneven_axis = -1;  ///< first axis with different sizes between devices
  i64 tensors = 0;       ///< number of tensors that share the set
  const std::string* example = nullptr;
};

/// Formats the first gap as "[0, 4) x [7168, 7232)"; empty if there is none.
std::string gap_text(const HolderSet& holders) {
  const auto gap = index::first_gap(holders);
  if (!gap) return "";
  std::vector<std::string> axes;
  for (const index::Interval& axis : *gap)
    axes.push_back(fmt::format("[{}, {})", axis.begin, axis.end));
  return axes.empty() ? "the scalar" : fmt::format("{}", fmt::join(axes, " x "));
}

int uneven_axis(const HolderSet& holders) {
  for (int axis = 0; axis < holders.rank(); ++axis) {
    const auto maps = holders.maps(axis);
    const auto differs = [&](const index::AxisMap& map) {
      return map.local_size() != maps.front().local_size();
    };
    if (std::any_of(maps.begin(), maps.end(), differs)) return axis;
  }
  return -1;
}

SetCoverage judge(const HolderSet& holders) {
  SetCoverage verdict;
  verdict.gap = gap_text(holders);
  verdict.overlaps = verdict.gap.empty() && has_partial_overlap(holders);
  verdict.uneven_axis = uneven_axis(holders);
  return verdict;
}

/// Formats "shards of 334+333", with only the first few of many devices.
std::string sizes_text(const HolderSet& holders, int axis) {
  constexpr int kShown = 16;
  std::string text;
  for (int h = 0; h < std::min(holders.size(), kShown); ++h) {
    const auto map = static_cast<size_t>(holders.pick(h)[static_cast<size_t>(axis)]);
    text += fmt::format("{}{}", h > 0 ? "+" : "shards of ", holders.maps(axis)[map].local_size());
  }
  return holders.size() > kShown ? text + "+..." : text;
}

}  // namespace

bool has_partial_overlap(const HolderSet& holders) {
  i64 held = 0;
  for (const int h : holders.firsts()) held += image_size(holders.region(h));
  return held > element_count(holders.shape()).value_or(0);
}

void check_coverage(std::span<const HeldTensor> tensors, const std::string& file,
                    Findings& findings) {
  std::map<const HolderSet*, SetCoverage> verdicts;
  for (const HeldTensor& tensor : tensors) {
    const auto [found, is_new] = verdicts.try_emplace(tensor.holders.get());
    if (is_new) found->second = judge(*tensor.holders);
    SetCoverage& verdict = found->second;
    if (verdict.tensors++ == 0) verdict.example = tensor.name;
    if (!verdict.gap.empty()) {
      findings.add({.rule = CheckRule::kCoverageGap,
                    .message = fmt::format("elements {} are on no rank", verdict.gap),
                    .file = file,
                    .tensor = *tensor.name,
                    .fix = "split the checkpoint again"});
    }
    if (verdict.overlaps && !tensor.is_overlap_meant) {
      findings.add({.rule = CheckRule::kPartialOverlap,
                    .message = "ranks share elements without being replicas of each other",
                    .file = file,
                    .tensor = *tensor.name});
    }
  }
  for (const auto& [holders, verdict] : verdicts) {
    if (verdict.uneven_axis < 0) continue;
    findings.add({.rule = CheckRule::kUneven,
                  .message = fmt::format("axis {} is not cut into equal shards ({} like this)",
                                         verdict.uneven_axis, plural(verdict.tensors, "tensor")),
                  .file = file,
                  .tensor = *verdict.example,
                  .axis = verdict.uneven_axis,
                  .found = sizes_text(*holders, verdict.uneven_axis)});
  }
}

bool check_ranks(std::span<const format::Checkpoint> parts, Findings& findings) {
  const format::Manifest& manifest = *parts.front().manifest;
  std::set<i64> present;
  for (const format::Checkpoint& part : parts) {
    for (const format::RankRecord& rank : part.manifest->ranks) present.insert(rank.rank);
  }
  for (i64 rank = 0; rank < manifest.mesh.size(); ++rank) {
    if (present.contains(rank)) continue;
    findings.add({.rule = CheckRule::kMissingRank,
                  .message = fmt::format("nothing here is for rank {} of {}", rank,
                                         to_string(manifest.mesh)),
                  .file = path_in(parts.front().folder(), format::kManifestName),
                  .rank = rank,
                  .found = fmt::format("{} of {} ranks", present.size(), manifest.mesh.size()),
                  .expected = "every rank of the mesh",
                  .fix = "give the folders of all ranks together, or split again without --ranks"});
  }
  return static_cast<i64>(present.size()) == manifest.mesh.size();
}

void check_digests(const format::Checkpoint& part, Findings& findings) {
  for (const format::TensorRecord& tensor : part.manifest->tensors) {
    if (!tensor.is_unread) continue;
    findings.add(
        {.rule = CheckRule::kUnread,
         .message = "an object store copied the tensor by itself, and no hash of it is known",
         .file = path_in(part.folder(), format::kManifestName),
         .tensor = tensor.name,
         .fix = "write the output again with --verify, which reads and hashes everything"});
  }
  for (const format::TensorRecord* tensor : format::without_digest(*part.manifest)) {
    findings.add({.rule = CheckRule::kNoDigest,
                  .message = "the manifest has all of the tensor and no digest for it",
                  .file = path_in(part.folder(), format::kManifestName),
                  .tensor = tensor->name,
                  .fix = "compare the output with its source (shardtool diff), or split again"});
  }
}

}  // namespace shardtool::check
