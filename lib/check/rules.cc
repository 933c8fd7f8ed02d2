#include "lib/check/rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace shardtool::check {
namespace {

using enum CheckRule;
using enum Severity;

constexpr auto kContainerRules = std::to_array<RuleInfo>({
    {kFileUnreadable, "ST0101", kError, "the file cannot be read",
     "The system refuses to open or read the file, or it is not a plain file."},
    {kFileMissing, "ST0102", kError, "a file is missing",
     "The index names a file that is not in the folder: the download or the copy is incomplete."},
    {kForeignFormat, "ST0103", kError, "the file is another format",
     "A torch file, a GGUF file, a git-LFS pointer or a web page under the name of a safetensors "
     "file."},
    {kHeaderLength, "ST0104", kError, "the header's length is out of range",
     "The first 8 bytes give the length of the header: 2 to 100,000,000 bytes that lie inside the "
     "file. Otherwise the file is truncated, or is no safetensors file."},
    {kHeaderJson, "ST0105", kError, "the header is not valid JSON",
     "The header must be one strict JSON object. Readers that are less strict may see other "
     "tensors than this one."},
    {kHeaderMetadata, "ST0106", kError, "__metadata__ is not strings only",
     "The format allows nothing but strings in __metadata__, each key once."},
    {kTensorTwice, "ST0107", kError, "a tensor occurs twice in a header",
     "Readers disagree on which of the two entries counts."},
    {kDtype, "ST0108", kError, "a dtype is unknown", "The format has a closed list of dtypes."},
    {kTensorSize, "ST0109", kError, "dtype, shape and data_offsets disagree",
     "The bytes between the two offsets must be those of the shape, and no size may overflow."},
    {kOverlap, "ST0110", kError, "tensors overlap",
     "Every byte of the data belongs to one tensor."},
    {kHole, "ST0111", kError, "there is a hole between tensors",
     "Tensors tile the data without gaps, so that nothing can hide in a file."},
    {kTruncated, "ST0112", kError, "the file is truncated",
     "The header describes more data than the file has: fetch it again."},
    {kTrailingBytes, "ST0113", kError, "something follows the data",
     "A safetensors file ends with its last tensor. What is appended could be another file, such "
     "as a zip archive."},
    {kUnknownField, "ST0114", kWarning, "a tensor entry has unknown fields",
     "They are ignored here; other readers may refuse the file."},
    {kMisaligned, "ST0115", kNote, "a tensor is misaligned",
     "Its offset in the file is not a multiple of its element size, so that a mapped file cannot "
     "be used without a copy. Writers pad the header to a multiple of 8 and order tensors by "
     "size."},
    {kFramework, "ST0116", kNote, "__metadata__ has no \"format\"",
     "Releases 4 of transformers refuse files whose __metadata__ does not say \"format\": \"pt\". "
     "Releases 5 read them."},
    {kTorchFile, "ST0117", kError, "a torch file cannot be read as data",
     "The file of torch.save (.bin, .pt, .pth, .ckpt) is damaged, contradicts itself, or holds "
     "what "
     "only Python code could build. Its pickle is never executed."},
    {kOtherEntry, "ST0118", kNote, "files or entries are left out",
     "Entries of a torch file that are no tensors, such as counters and arguments, or files in "
     "another format beside the weights. FORMAT:FOLDER reads the files of that format instead."},
    {kHeaderInvalid, "ST0119", kError, "the GGUF header is invalid",
     "A GGUF header breaks its format: an unknown type of value, a key that occurs twice, a wrong "
     "alignment, too many axes."},
    {kIndexInvalid, "ST0120", kError, "the index is invalid",
     "model.safetensors.index.json must be strict JSON and map every tensor to one file."},
    {kIndexNamesAbsent, "ST0121", kError, "the index names tensors that are not there",
     "The file that the index names does not hold the tensor: they are of different downloads."},
    {kIndexLacks, "ST0122", kError, "the index does not name all tensors",
     "A loader that follows the index misses these tensors without a word."},
    {kTensorInTwoFiles, "ST0123", kError, "a tensor is in more than one file",
     "Which copy is loaded depends on the reader."},
    {kSameFile, "ST0124", kError, "two names are one file",
     "Links to the same file: its tensors stand twice."},
    {kTotalSize, "ST0125", kError, "total_size is wrong",
     "The index's metadata.total_size is the sum of the bytes of all tensors. Loaders size "
     "buffers and progress by it."},
    {kUnlistedFile, "ST0126", kError, "a weights file is not in the index",
     "A leftover of another version: loaders that read every file in the folder mix the two."},
    {kNoIndex, "ST0127", kWarning, "files without an index",
     "The files are complete by their names, but most loaders need the index."},
    {kUnclearChoice, "ST0128", kError, "it is unclear which files make the checkpoint",
     "Several weights files, and neither an index, nor a manifest, nor a mapping says how they "
     "belong together."},
    {kSplitParts, "ST0129", kError, "the parts of a GGUF model disagree",
     "The parts of a GGUF model count parts or tensors otherwise than their names: they are of "
     "different splits."},
    {kChunksInvalid, "ST0130", kError, "the chunks of a tensor contradict each other",
     "They have different dtypes or numbers of axes, or one leaves the tensor: files of different "
     "saves are mixed."},
    {kChunksIncomplete, "ST0131", kError, "the chunks of a tensor do not cover it",
     "All files are there, but some elements of the tensor are in none of them."},
});

constexpr auto kMappingRules = std::to_array<RuleInfo>({
    {kMappingSyntax, "ST0201", kError, "the mapping is not strict JSON",
     "See `shardtool explain E0201`."},
    {kMappingSchema, "ST0202", kError, "the mapping does not follow the schema",
     "See `shardtool explain E0202` and `shardtool schema`."},
    {kNotDivisible, "ST0203", kError, "an axis does not divide over the mesh",
     "See `shardtool explain E0203`."},
    {kUnusedRule, "ST0204", kWarning, "unused rule",
     "A rule of the mapping matches no tensor, usually for a typo in its pattern."},
    {kNoRule, "ST0205", kError, "a tensor matches no rule", "See `shardtool explain E0205`."},
    {kAmbiguousRule, "ST0206", kError, "two rules match a tensor",
     "See `shardtool explain E0206`."},
    {kUnknownName, "ST0207", kError, "the mapping uses an undefined name",
     "See `shardtool explain E0204`."},
    {kRuleShape, "ST0208", kError, "a rule does not fit the tensor",
     "See `shardtool explain E0208`."},
    {kMeshAxisReused, "ST0209", kError, "a mesh axis cuts one tensor twice",
     "See `shardtool explain E0209`."},
    {kEmptyShard, "ST0210", kError, "a rank would get an empty shard",
     "See `shardtool explain E0210`."},
    {kBlockStraddle, "ST0211", kError, "a cut falls inside a block",
     "A weight and its scales would be cut at different places, and the numbers would be wrong "
     "without an error. See `shardtool explain E0211`."},
    {kSizeExpression, "ST0212", kError, "a size cannot be computed",
     "See `shardtool explain E0212`."},
    {kExtends, "ST0213", kError, "an inherited mapping cannot be used",
     "See `shardtool explain E0213`."},
    {kGroups, "ST0214", kError, "query and key/value heads cannot share one cut",
     "See `shardtool explain E0214`."},
    {kMesh, "ST0215", kError, "the mesh is not valid", "See `shardtool explain E0215`."},
    {kAssertion, "ST0216", kError, "the mapping asserts something that does not hold",
     "See `shardtool explain E0216`."},
    {kStrategy, "ST0217", kError, "a strategy cannot be applied", "See `shardtool explain E0217`."},
    {kSubByteCut, "ST0218", kError, "a cut falls inside a byte", "See `shardtool explain E0218`."},
    {kTied, "ST0219", kError, "tied tensors differ", "See `shardtool explain E0219`."},
    {kMappingConfig, "ST0220", kError, "no mapping fits the model",
     "See `shardtool explain E0220`."},
    {kUneven, "ST0221", kNote, "an axis is cut unevenly",
     "The ranks get shards of different sizes. shardtool and engines that pad can load them; "
     "others require equal shards."},
    {kMappingWarning, "ST0222", kWarning, "the mapping may not be meant for this checkpoint",
     "It names other architectures, or declares axes or rules that are not used."},
    {kDoubtfulCut, "ST0223", kWarning, "a cut is probably wrong",
     "A tensor that holds several matrices (q, k and v, or gate and up) is cut as one matrix, a "
     "cut "
     "falls inside a head, or the heads of a layer have other sizes than config.json says. Merging "
     "such shards gives back the model, but a rank computes with the wrong rows. `validate` with a "
     "graph decides."},
});

constexpr auto kShardRules = std::to_array<RuleInfo>({
    {kCoverageGap, "ST0301", kError, "coverage gap",
     "Some elements of a tensor are on no rank: they are lost, and a merge would leave a hole."},
    {kPartialOverlap, "ST0302", kWarning, "shards overlap in part",
     "Ranks or chunks share elements without being replicas of each other. Meant only where "
     "key/value heads are gathered per query head."},
    {kMissingRank, "ST0303", kError, "a rank is missing",
     "The mesh has the rank, but the folder holds nothing for it."},
    {kRankFileMissing, "ST0304", kError, "a rank's file is missing",
     "The manifest, or the numbering of the files, names a file that is not there."},
    {kExtraFile, "ST0305", kError, "a weights file belongs to no rank",
     "The manifest does not name it. Engines that load every file that fits their pattern read "
     "it all the same."},
    {kManifestInvalid, "ST0306", kError, "the manifest is invalid",
     "manifest.json is damaged, was edited, or was written by a newer version."},
    {kFileSize, "ST0307", kError, "a file has another size than was written",
     "The file was truncated or edited after it was written."},
    {kHeaderChanged, "ST0308", kError, "a header is not the one that was written",
     "The header's hash differs from the manifest's."},
    {kShardDiffers, "ST0309", kError, "a shard is not what the manifest records",
     "dtype, shape or place differ."},
    {kShardMissing, "ST0310", kError, "a rank lacks a tensor",
     "Other ranks, or the manifest, have a shard of it for this rank."},
    {kShardUnrecorded, "ST0311", kError, "a tensor is not in the manifest",
     "The file holds a tensor that was not written with it."},
    {kShardLink, "ST0312", kError, "a shard is a symbolic link",
     "Outputs are plain files: what a link points to can change under them."},
    {kRankShape, "ST0313", kError, "a rank's shape does not fit the cut",
     "The shards of a tensor on all ranks do not add up to one tensor under this mapping."},
    {kRankDtype, "ST0314", kError, "ranks have different dtypes",
     "The shards of one tensor have one dtype."},
    {kMixedCheckpoints, "ST0315", kError, "files of different checkpoints are mixed",
     "Two numberings, or files of two splits, are in one folder or were given together."},
    {kUnproved, "ST0316", kNote, "not proved",
     "Shards without a manifest do not say what they are shards of: what follows from the mapping "
     "alone was checked, the rest cannot be."},
    {kNoDigest, "ST0317", kError, "a tensor has no digest",
     "All elements of the tensor are in the shards of this manifest, so the run that wrote them "
     "must have read the whole tensor and known its digest. One without it may have been published "
     "unfinished, with zeros in its place: compare the output with its source (`shardtool diff`), "
     "or split again. An output of --ranks rightly has no digest for tensors that other ranks hold "
     "a part of."},
    {kUnread, "ST0318", kNote, "a tensor was copied unread",
     "An object store made the shards out of objects that it had. No byte of them came by, so that "
     "the manifest has no hashes of them, and damage would not be noticed."},
    {kCopiedFile, "ST0319", kError, "a rank's file is a copy of another rank's",
     "Two ranks hold different shards of the tensors, and their files have the same bytes."},
});

constexpr auto kModelRules = std::to_array<RuleInfo>({
    {kHeads, "ST0401", kError, "heads contradict the tensors",
     "heads x head_dim of config.json is not the width of the projections: an engine cuts the "
     "heads at the wrong places."},
    {kHiddenSize, "ST0402", kError, "hidden_size contradicts the tensors",
     "config.json belongs to another model, or the tensors do."},
    {kVocabSize, "ST0403", kError, "vocab_size contradicts the tensors",
     "The embedding has fewer rows than the vocabulary has tokens."},
    {kVocabPadding, "ST0404", kNote, "the vocabulary is padded",
     "The embedding has more rows than vocab_size. Cut to vocab_size only when the extra rows are "
     "known to be unused."},
    {kMissingLayer, "ST0405", kError, "a layer is missing",
     "config.json promises more layers than the tensors have."},
    {kExtraLayer, "ST0406", kWarning, "a layer too many",
     "The tensors have a layer that config.json does not count."},
    {kLayerTensor, "ST0407", kWarning, "a layer lacks a tensor that its neighbours have",
     "Layers of one kind have the same tensors, and matrices that multiply one value all have a "
     "bias or none. A tensor that one of them alone lacks was probably lost, as was a weight of "
     "which only the bias is there."},
    {kMissingExpert, "ST0408", kError, "an expert is missing",
     "config.json promises more experts than a layer has."},
    {kTiedTwice, "ST0409", kWarning, "a tied tensor is stored twice",
     "tie_word_embeddings is true and both tensors are there: loaders ignore one of them."},
    {kHeadMissing, "ST0410", kError, "the output head is missing",
     "tie_word_embeddings is false, but there is no lm_head.weight: an engine starts with random "
     "numbers."},
    {kScaleAlone, "ST0411", kError, "a scale without its weight",
     "The quantised weight that the scale belongs to is not there."},
    {kScaleMissing, "ST0412", kError, "a quantised weight without its scale",
     "Without its scale, or the zero points that config.json says it has, the weight means "
     "nothing."},
    {kScaleShape, "ST0413", kError, "a scale does not fit its weight",
     "One scale stands for one block of the weight; their numbers of blocks differ, or another "
     "part of a packed weight does not fit its codes. The size of a block, such as group_size, is "
     "that of config.json. Or the weight or its scales have another type than the format that "
     "config.json names, or it names none: the same bytes are other numbers then."},
    {kBlockSizes, "ST0414", kNote, "blocks limit the tensor-parallel sizes",
     "With these sizes a cut in equal shards falls inside a quantisation block."},
    {kIntermediateSize, "ST0415", kError, "intermediate_size contradicts the tensors",
     "config.json belongs to another model, or the tensors do."},
    {kConfigInvalid, "ST0416", kError, "config.json cannot be used",
     "It is not a strict JSON object, or a size in it is not a positive integer."},
    {kSize, "ST0417", kError, "config.json contradicts the shape of a tensor",
     "config.json belongs to another model, or the tensors do."},
    {kTensorMissing, "ST0418", kError, "a tensor that the model needs is missing",
     "The graph of the model that config.json names reads it (`shardtool graphs`): an engine "
     "starts "
     "with random numbers, or refuses the checkpoint."},
    {kPackedForm, "ST0419", kNote, "packed weights are not checked",
     "shardtool does not unpack weights in the form that config.json says, such as GPTQ of 3 bits, "
     "whose codes lie across the borders of words. Their extents were not compared with those of "
     "their scales and zeros."},
});

constexpr auto kHubRules = std::to_array<RuleInfo>({
    {kFileTooLarge, "ST0501", kOff, "a file is larger than 500 GB",
     "The Hugging Face Hub's documented limit for one file; it recommends less than 200 GB. Use "
     "--max-file-size."},
    {kTooManyFiles, "ST0502", kOff, "a folder has more than 10,000 files",
     "The Hugging Face Hub's documented limit for one folder."},
    {kFileName, "ST0503", kOff, "a file name is not portable",
     "Names with other characters than letters, digits, dot, dash and underscore break scripts "
     "and some stores."},
});

constexpr auto kSafetyRules = std::to_array<RuleInfo>({
    {kPickle, "ST0601", kWarning, "pickle files",
     "A pickle can run code when torch.load or another program loads it, and loaders may prefer "
     "these files to safetensors. shardtool reads them without running anything."},
    {kLinkOutside, "ST0602", kError, "a link leaves the folder",
     "A symbolic link points outside the checkpoint: its content is not what was shipped, and a "
     "copy would publish somebody's file."},
    {kPathTraversal, "ST0603", kError, "the index names a path outside the folder",
     "A file name with separators, \"..\" or an absolute path makes loaders read files that are "
     "not part of the checkpoint."},
    {kRemoteCode, "ST0604", kNote, "the model brings its own code",
     "config.json has an auto_map: loaders run Python files of the checkpoint when "
     "trust_remote_code is given. Read them first."},
});

constexpr auto kDataRules = std::to_array<RuleInfo>({
    {kNan, "ST0701", kError, "NaN in a tensor",
     "A weight that is not a number makes every output that depends on it NaN."},
    {kInfinite, "ST0702", kWarning, "infinity in a tensor",
     "An overflow of a conversion, mostly; masks may hold infinities on purpose."},
    {kZeroTensor, "ST0703", kWarning, "a tensor is all zeros",
     "A weight that was allocated and never loaded looks like this. Biases may be zero on "
     "purpose: tensors with one axis are not reported, but for scales of quantised weights."},
    {kZeroShard, "ST0704", kWarning, "a shard is all zeros and others are not",
     "One rank's shard was never written, or it has zeros on purpose, such as the moments of rows "
     "that no batch had. Bools, vectors of integers, and bytes that a manifest records are not "
     "reported."},
    {kDigest, "ST0705", kError, "a tensor's digest is wrong",
     "The shards together are not the tensor that was split."},
    {kShardHash, "ST0706", kError, "a shard's hash is wrong",
     "The bytes are not those that were written: the file is damaged or was edited."},
    {kReplicasDiffer, "ST0707", kError, "replicas differ",
     "Ranks hold other bytes for the same elements of a tensor."},
    {kFileHash, "ST0708", kError, "a file's SHA-256 is wrong",
     "The manifest was written with --hash sha256, and the file is not the one that was hashed: it "
     "is damaged or was edited."},
    {kBlobName, "ST0709", kError, "a blob is not what its name says",
     "The Hugging Face cache names a blob by its SHA-256, or by git's SHA-1 of a small file. This "
     "one has another content: the download was cut short, or the file was edited in the cache."},
    {kRecordChecksum, "ST0710", kError, "a record's CRC-32 is wrong",
     "torch.save writes the CRC-32 of every record into the zip archives that .bin, .pt, .pth and "
     ".ckpt files and the chunks of DCP are; of what shardtool wrote the manifest has the hashes. "
     "The bytes are not those that it saved: the file is damaged or was edited. torch.load does "
     "not look; `unzip -t` does."},
    {kGroupIndex, "ST0711", kError, "an input is in a wrong group",
     "g_idx of GPTQ says which row of scales and zeros an input uses. It points to a row that is "
     "not "
     "there, or, without activation order, to another one than the input's own: engines that "
     "follow "
     "g_idx and those that count groups would compute different numbers."},
});

constexpr size_t kRules = kContainerRules.size() + kMappingRules.size() + kShardRules.size() +
                          kModelRules.size() + kHubRules.size() + kSafetyRules.size() +
                          kDataRules.size();

constexpr auto join_tables() {
  std::array<RuleInfo, kRules> all{};
  auto at = all.begin();
  const auto append = [&at](const auto& rows) { at = std::copy(rows.begin(), rows.end(), at); };
  append(kContainerRules);
  append(kMappingRules);
  append(kShardRules);
  append(kModelRules);
  append(kHubRules);
  append(kSafetyRules);
  append(kDataRules);
  return all;
}

constexpr auto kTable = join_tables();

/// Checks that the table is in enumeration order, so that a look-up is indexing.
constexpr bool is_in_order() {
  for (size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].rule != static_cast<CheckRule>(i)) return false;
  }
  return true;
}
static_assert(is_in_order());

constexpr auto kFamilies = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"ST01", "container"},
    {"ST02", "mapping"},
    {"ST03", "shards"},
    {"ST04", "model"},
    {"ST05", "hub and host"},
    {"ST06", "safety"},
    {"ST07", "data"},
});

}  // namespace

std::string_view to_string(Severity severity) {
  switch (severity) {
    case kOff:
      return "off";
    case kNote:
      return "note";
    case kWarning:
      return "warning";
    case kError:
      return "error";
  }
  return "";
}

std::span<const RuleInfo> rule_table() {
  return kTable;
}

const RuleInfo& rule_info(CheckRule rule) {
  return kTable[static_cast<size_t>(rule)];
}

const RuleInfo* find_rule(std::string_view id) {
  const auto same = [id](const RuleInfo& row) {
    return std::equal(id.begin(), id.end(), row.id.begin(), row.id.end(), [](char a, char b) {
      return std::toupper(static_cast<unsigned char>(a)) == b;
    });
  };
  const auto row = std::find_if(kTable.begin(), kTable.end(), same);
  return row == kTable.end() ? nullptr : &*row;
}

std::string_view family_of(std::string_view id) {
  const auto found = std::find_if(kFamilies.begin(), kFamilies.end(), [id](const auto& family) {
    return id.starts_with(family.first);
  });
  return found == kFamilies.end() ? "" : found->second;
}

}  // namespace shardtool::check
