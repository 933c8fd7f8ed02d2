#include "lib/check/container.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "lib/store/reader.h"

namespace shardtool::check {
namespace {

using format::Checkpoint;
using format::Oddity;
using format::ProblemKind;
using format::StoredTensor;

CheckRule header_rule(const Error& error) {
  const auto& place = error.place();
  const bool in_metadata = place && place->pointer.starts_with("/__metadata__");
  return in_metadata ? CheckRule::kHeaderMetadata : CheckRule::kHeaderJson;
}

/// Rules of the problems in the order of ProblemKind, except for kHeaderJson (header_rule).
struct ProblemRule {
  ProblemKind kind;
  CheckRule rule;
};

constexpr auto kProblemRules = std::to_array<ProblemRule>({
    {ProblemKind::kFileMissing, CheckRule::kFileMissing},
    {ProblemKind::kUnreadable, CheckRule::kFileUnreadable},
    {ProblemKind::kForeignFormat, CheckRule::kForeignFormat},
    {ProblemKind::kHeaderLength, CheckRule::kHeaderLength},
    {ProblemKind::kHeaderInvalid, CheckRule::kHeaderInvalid},
    {ProblemKind::kTensorTwice, CheckRule::kTensorTwice},
    {ProblemKind::kDtype, CheckRule::kDtype},
    {ProblemKind::kTensorSize, CheckRule::kTensorSize},
    {ProblemKind::kOverlap, CheckRule::kOverlap},
    {ProblemKind::kHole, CheckRule::kHole},
    {ProblemKind::kTruncated, CheckRule::kTruncated},
    {ProblemKind::kTrailingBytes, CheckRule::kTrailingBytes},
    {ProblemKind::kTorchFile, CheckRule::kTorchFile},
    {ProblemKind::kUnclearChoice, CheckRule::kUnclearChoice},
    {ProblemKind::kSameFile, CheckRule::kSameFile},
    {ProblemKind::kSplitParts, CheckRule::kSplitParts},
    {ProblemKind::kTensorInTwoFiles, CheckRule::kTensorInTwoFiles},
    {ProblemKind::kChunksInvalid, CheckRule::kChunksInvalid},
    {ProblemKind::kChunksIncomplete, CheckRule::kChunksIncomplete},
    {ProblemKind::kIndexInvalid, CheckRule::kIndexInvalid},
    {ProblemKind::kIndexEscapes, CheckRule::kPathTraversal},
    {ProblemKind::kIndexNamesAbsent, CheckRule::kIndexNamesAbsent},
    {ProblemKind::kIndexLacks, CheckRule::kIndexLacks},
    {ProblemKind::kManifestInvalid, CheckRule::kManifestInvalid},
    {ProblemKind::kManifestLink, CheckRule::kShardLink},
    {ProblemKind::kFileSize, CheckRule::kFileSize},
    {ProblemKind::kHeaderChanged, CheckRule::kHeaderChanged},
    {ProblemKind::kShardMissing, CheckRule::kShardMissing},
    {ProblemKind::kShardDiffers, CheckRule::kShardDiffers},
    {ProblemKind::kShardUnrecorded, CheckRule::kShardUnrecorded},
});
static_assert(kProblemRules.size() == static_cast<size_t>(ProblemKind::kShardUnrecorded),
              "every kind of problem but kHeaderJson has a row");

CheckRule rule_of(const format::Problem& problem) {
  if (problem.kind == ProblemKind::kHeaderJson) return header_rule(problem.error);
  const auto* row =
      std::find_if(kProblemRules.begin(), kProblemRules.end(),
                   [&](const ProblemRule& rule) { return rule.kind == problem.kind; });
  return row->rule;
}

void check_alignment(const Checkpoint& checkpoint, Findings& findings) {
  constexpr int kBitsOfByte = 8;
  for (const StoredTensor& tensor : checkpoint.tensors) {
    const i64 element = bits(tensor.dtype) / kBitsOfByte;
    if (tensor.part) continue;  // others' blobs stand at any offset
    if (element < 2 || tensor.bytes == 0 || tensor.offset % element == 0) continue;
    const auto& file = checkpoint.files[static_cast<size_t>(tensor.file)];
    findings.add({.rule = CheckRule::kMisaligned,
                  .message = fmt::format("a {} tensor begins at byte {} of the file",
                                         to_string(tensor.dtype), tensor.offset),
                  .file = path_in(checkpoint.folder(), file.name),
                  .tensor = tensor.name,
                  .expected = fmt::format("a multiple of {}", element),
                  .fix = "write the file again: `shardtool merge` aligns headers and tensors"});
  }
}

void check_framework(const Checkpoint& checkpoint, Findings& findings) {
  for (const auto& file : checkpoint.files) {
    if (file.state != format::FileState::kRead || !file.framework.empty()) continue;
    findings.add({.rule = CheckRule::kFramework,
                  .message = "__metadata__ does not say which framework the file is for",
                  .file = path_in(checkpoint.folder(), file.name),
                  .expected = R"("__metadata__": {"format": "pt"})",
                  .fix = "write the file with save_pretrained, or again with `shardtool merge`"});
  }
}

CheckRule rule_of(const format::Warning& warning, bool is_output) {
  switch (warning.oddity) {
    case Oddity::kUnlistedFile:
      return is_output ? CheckRule::kExtraFile : CheckRule::kUnlistedFile;
    case Oddity::kTotalSize:
      return CheckRule::kTotalSize;
    case Oddity::kUnknownField:
      return CheckRule::kUnknownField;
    case Oddity::kOutsideLink:
      return CheckRule::kLinkOutside;
    case Oddity::kNoIndex:
      return CheckRule::kNoIndex;
    case Oddity::kOtherEntry:
      return CheckRule::kOtherEntry;
    case Oddity::kOverlap:
      return CheckRule::kPartialOverlap;
  }
  return CheckRule::kUnknownField;
}

}  // namespace

std::string path_in(const std::string& folder, const std::string& name) {
  if (name.empty() || folder == ".") return name.empty() ? folder : name;
  return folder + "/" + name;
}

void ContainerProblems::note(const format::Problem& problem) {
  // Missing files are reported once together and once each; skip the summary.
  if (problem.kind == ProblemKind::kFileMissing && problem.file.empty()) return;
  const auto& place = problem.error.place();
  const bool in_file = problem.file.empty() && place && !place->file.empty();
  Finding finding = finding_of(rule_of(problem), problem.error,
                               in_file ? place->file : path_in(folder_, problem.file));
  if (problem.kind == ProblemKind::kUnclearChoice) {
    unclear_ = std::move(finding);
  } else if (problem.kind == ProblemKind::kFileMissing) {
    missing_.push_back(std::move(finding));
  } else if (problem.kind == ProblemKind::kFileSize) {
    sizes_.push_back(std::move(finding));
  } else {
    const bool is_short =
        problem.kind == ProblemKind::kTruncated || problem.kind == ProblemKind::kHeaderLength;
    if (is_short) short_.insert(finding.file);
    findings_.add(std::move(finding));
  }
}

void ContainerProblems::finish(const Checkpoint& opened) {
  for (Finding& finding : missing_) {
    if (opened.manifest) finding.rule = CheckRule::kRankFileMissing;
    findings_.add(std::move(finding));
  }
  missing_.clear();
  for (Finding& finding : sizes_) {
    if (!short_.contains(finding.file)) findings_.add(std::move(finding));
  }
  sizes_.clear();
}

void check_container(const Checkpoint& checkpoint, Findings& findings) {
  if (findings.wants(CheckRule::kMisaligned)) check_alignment(checkpoint, findings);
  if (findings.wants(CheckRule::kFramework)) check_framework(checkpoint, findings);
  for (const auto& warning : checkpoint.warnings) {
    const bool is_output = checkpoint.manifest.has_value();
    const bool is_path = warning.oddity == Oddity::kTotalSize;
    const std::string file = is_path ? warning.file : path_in(checkpoint.folder(), warning.file);
    const bool is_missing = warning.oddity == Oddity::kOutsideLink && !store::exists(file);
    findings.add({.rule = is_missing ? CheckRule::kFileMissing : rule_of(warning, is_output),
                  .message = warning.message,
                  .file = file});
  }
}

}  // namespace shardtool::check
