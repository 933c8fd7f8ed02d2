#include "shardtool/check/coverage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "shardtool/base/text.h"
#include "shardtool/check/container.h"
#include "shardtool/index/join.h"

namespace shardtool::check {
namespace {

using index::HolderSet;

/// What is said about one set of holders.
struct Verdict {
  std::string gap;
  bool overlaps = false;
};

std::string box_text(index::Join::Box box) {
  std::vector<std::string> axes;
  for (const index::AxisCell* cell : box) {
    axes.push_back(fmt::format("[{}, {})", cell->begin, cell->begin + cell->size));
  }
  return axes.empty() ? "the scalar" : fmt::format("{}", fmt::join(axes, " x "));
}

Verdict judge(const HolderSet& holders) {
  Verdict verdict{first_gap(holders), false};
  verdict.overlaps = verdict.gap.empty() && has_partial_overlap(holders);
  return verdict;
}

}  // namespace

std::string first_gap(const HolderSet& holders) {
  const HolderSet whole = HolderSet::whole(holders.shape());
  const index::Join join(holders, whole);
  std::string gap;
  join.for_each_box([&](index::Join::Box box) {
    if (gap.empty() && join.source_of(box).holders.empty()) gap = box_text(box);
  });
  return gap;
}

bool has_partial_overlap(const HolderSet& holders) {
  i64 held = 0;
  for (int h = 0; h < holders.size(); ++h) {
    if (holders.holders_with(holders.pick(h)).front() == h) held += image_size(holders.region(h));
  }
  return held > element_count(holders.shape()).value_or(0);
}

void check_coverage(std::span<const HeldTensor> tensors, const std::string& file,
                    Findings& findings) {
  std::map<const HolderSet*, Verdict> verdicts;
  for (const HeldTensor& tensor : tensors) {
    const auto [found, is_new] = verdicts.try_emplace(tensor.holders.get());
    if (is_new) found->second = judge(*tensor.holders);
    const Verdict& verdict = found->second;
    if (!verdict.gap.empty()) {
      findings.add({.rule = Rule::kCoverageGap,
                    .message = fmt::format("elements {} are on no device", verdict.gap),
                    .file = file,
                    .tensor = *tensor.name,
                    .fix = "split the checkpoint again"});
    }
    if (verdict.overlaps) {
      findings.add({.rule = Rule::kPartialOverlap,
                    .message = "devices share elements without being replicas of each other",
                    .file = file,
                    .tensor = *tensor.name});
    }
  }
}

bool check_ranks(std::span<const checkpoint::Checkpoint> parts, Findings& findings) {
  const checkpoint::Manifest& manifest = *parts.front().manifest;
  std::set<i64> present;
  for (const checkpoint::Checkpoint& part : parts) {
    for (const checkpoint::RankRecord& rank : part.manifest->ranks) present.insert(rank.rank);
  }
  for (i64 rank = 0; rank < manifest.mesh.size(); ++rank) {
    if (present.contains(rank)) continue;
    findings.add({.rule = Rule::kMissingRank,
                  .message = fmt::format("nothing here is for rank {} of {}", rank,
                                         to_string(manifest.mesh)),
                  .file = path_in(parts.front().folder(), "manifest.json"),
                  .rank = rank,
                  .found = fmt::format("{} of {} ranks", present.size(), manifest.mesh.size()),
                  .expected = "every rank of the mesh",
                  .fix = "give the folders of all ranks together, or split again without --ranks"});
  }
  return static_cast<i64>(present.size()) == manifest.mesh.size();
}

}  // namespace shardtool::check
