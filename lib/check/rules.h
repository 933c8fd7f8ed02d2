#pragma once

#include <span>
#include <string_view>

namespace shardtool::check {

/// Severity of a finding. Ordered, so that "at least a warning" is a comparison.
enum class Severity { kOff, kNote, kWarning, kError };

std::string_view to_string(Severity severity);

/// Every result that a check can report. Closed: rule_table() holds id, severity, title and
/// explanation of each, and a test provokes each of them.
enum class CheckRule {
  // the container
  kFileUnreadable,
  kFileMissing,
  kForeignFormat,
  kHeaderLength,
  kHeaderJson,
  kHeaderMetadata,
  kTensorTwice,
  kDtype,
  kTensorSize,
  kOverlap,
  kHole,
  kTruncated,
  kTrailingBytes,
  kUnknownField,
  kMisaligned,
  kFramework,
  kTorchFile,
  kOtherEntry,
  kHeaderInvalid,
  kIndexInvalid,
  kIndexNamesAbsent,
  kIndexLacks,
  kTensorInTwoFiles,
  kSameFile,
  kTotalSize,
  kUnlistedFile,
  kNoIndex,
  kUnclearChoice,
  kSplitParts,
  kChunksInvalid,
  kChunksIncomplete,
  // the mapping
  kMappingSyntax,
  kMappingSchema,
  kNotDivisible,
  kUnusedRule,
  kNoRule,
  kAmbiguousRule,
  kUnknownName,
  kRuleShape,
  kMeshAxisReused,
  kEmptyShard,
  kBlockStraddle,
  kSizeExpression,
  kExtends,
  kGroups,
  kMesh,
  kAssertion,
  kStrategy,
  kSubByteCut,
  kTied,
  kMappingConfig,
  kUneven,
  kMappingWarning,
  kDoubtfulCut,
  // shards
  kCoverageGap,
  kPartialOverlap,
  kMissingRank,
  kRankFileMissing,
  kExtraFile,
  kManifestInvalid,
  kFileSize,
  kHeaderChanged,
  kShardDiffers,
  kShardMissing,
  kShardUnrecorded,
  kShardLink,
  kRankShape,
  kRankDtype,
  kMixedCheckpoints,
  kUnproved,
  kNoDigest,
  kUnread,
  kCopiedFile,
  // the model
  kHeads,
  kHiddenSize,
  kVocabSize,
  kVocabPadding,
  kMissingLayer,
  kExtraLayer,
  kLayerTensor,
  kMissingExpert,
  kTiedTwice,
  kHeadMissing,
  kScaleAlone,
  kScaleMissing,
  kScaleShape,
  kBlockSizes,
  kIntermediateSize,
  kConfigInvalid,
  kSize,
  kTensorMissing,
  kPackedForm,
  // hub and host
  kFileTooLarge,
  kTooManyFiles,
  kFileName,
  // safety
  kPickle,
  kLinkOutside,
  kPathTraversal,
  kRemoteCode,
  // data
  kNan,
  kInfinite,
  kZeroTensor,
  kZeroShard,
  kDigest,
  kShardHash,
  kReplicasDiffer,
  kFileHash,
  kBlobName,
  kRecordChecksum,
  kGroupIndex,
};

/// One row of the table.
struct RuleInfo {
  CheckRule rule;
  std::string_view id;  ///< stable, "ST0301"
  Severity severity;    ///< without a profile
  std::string_view title;
  std::string_view explanation;  ///< meaning and remedy, printed by `explain <id>`
};

std::span<const RuleInfo> rule_table();
const RuleInfo& rule_info(CheckRule rule);
/// Returns the row with this id ("ST0301", case-insensitive), or null.
const RuleInfo* find_rule(std::string_view id);
/// Name of the family of an id, such as "shards" for "ST0301"; empty if unknown.
std::string_view family_of(std::string_view id);

}  // namespace shardtool::check
