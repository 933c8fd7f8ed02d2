#include <filesystem>
#include <fstream>

#include "tests/check/broken_checkpoints.h"

namespace shardtool::test {
namespace {

namespace fs = std::filesystem;
using check::CheckRule;

constexpr const char* kRank0 = "/model-rank-0-part-0.safetensors";
constexpr const char* kRank1 = "/model-rank-1-part-0.safetensors";
constexpr const char* kManifest = "/manifest.json";

/// Splits the sample over tp=2 and damages its folder.
template <class Damage>
auto split_and(Damage damage) {
  return [damage](const TempFolder& folder) {
    const std::string output = split_sample(folder);
    damage(output);
    return options_for(output);
  };
}

/// Makes two ranks without a manifest, each with these tensors, and a mapping that cuts axis 0 of
/// "w".
auto foreign(std::vector<WrittenTensor> rank0, std::vector<WrittenTensor> rank1) {
  return [rank0, rank1](const TempFolder& folder) {
    write_tensors(folder, "model-rank-0-part-0.safetensors", rank0);
    write_tensors(folder, "model-rank-1-part-0.safetensors", rank1);
    api::CheckOptions options = options_for(folder.path());
    options.mapping.emplace();
    options.mapping->path =
        folder.write("mapping.json", R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
          "rules": [{"match": "w", "strategy": {"type": "rowwise", "over": "tp"}},
                    {"match": "n", "strategy": "replicate"}]})");
    return options;
  };
}

/// Checks a single file of such a folder after damage.
template <class Damage>
auto file_of_split(Damage damage) {
  return [damage](const TempFolder& folder) {
    const std::string file = split_sample(folder) + kRank1;
    damage(file);
    return options_for(file);
  };
}

/// Makes the manifest claim that rank 1 of a tensor has the rows of rank 0.
void repeat_rows(const std::string& output) {
  edit(output + kManifest, "\"slices\":[[[500,1000]]", "\"slices\":[[[0,500]]");
}

}  // namespace

std::vector<Broken> broken_shards() {
  return {
      {CheckRule::kCoverageGap, split_and(repeat_rows)},
      {CheckRule::kMissingRank,
       [](const TempFolder& folder) { return options_for(split_sample(folder, {0})); }},
      {CheckRule::kRankFileMissing, split_and([](const auto& o) { fs::remove(o + kRank1); })},
      {CheckRule::kExtraFile, split_and([](const auto& o) {
         fs::copy(o + kRank0, o + "/model-rank-2-part-0.safetensors");
       })},
      {CheckRule::kExtraFile,
       split_and([](const auto& o) { fs::copy(o + kRank0, o + "/__2_0.distcp"); })},
      {CheckRule::kManifestInvalid,
       split_and([](const auto& o) { fs::resize_file(o + kManifest, 100); })},
      {CheckRule::kFileSize, split_and([](const auto& o) {
         fs::resize_file(o + kRank1, fs::file_size(o + kRank1) + 1);
       })},
      {CheckRule::kHeaderChanged,
       split_and([](const auto& o) { edit(o + kRank0, R"("format":"pt")", R"("format":"tf")"); })},
      {CheckRule::kShardDiffers, split_and([](const auto& o) {
         edit(o + kManifest, R"("dtype":"BF16")", R"("dtype":"F16")");
       })},
      {CheckRule::kShardMissing, split_and([](const auto& o) {
         edit(o + kManifest, R"("model.norm.weight")", R"("model.norm.weighs")");
       })},
      {CheckRule::kShardUnrecorded, split_and([](const auto& o) {
         edit(o + kManifest, R"("model.norm.weight")", R"("model.norm.weighs")");
       })},
      {CheckRule::kShardLink, split_and([](const auto& o) {
         fs::rename(o + kRank1, o + "/../elsewhere");
         fs::create_symlink("../elsewhere", o + kRank1);
       })},
      {CheckRule::kRankShape, foreign({{"w", "F32", {4, 2}}}, {{"w", "F32", {2, 2}}})},
      {CheckRule::kVocabSize,
       [](const TempFolder& folder) {
         const std::string output = split_sample(folder);
         fs::remove(output + kManifest);
         edit(output + "/config.json", R"("vocab_size": 1000)", R"("vocab_size": 1001)");
         api::CheckOptions options = options_for(output);
         options.mapping.emplace();
         options.mapping->mesh = mesh::parse_mesh("tp=2");
         return options;
       }},
      {CheckRule::kRankDtype, foreign({{"w", "F32", {2, 2}}}, {{"w", "F16", {2, 2}}})},
      {CheckRule::kMixedCheckpoints,
       [](const TempFolder& folder) {
         write_tensors(folder, "model-00001-of-00002.safetensors", {{"a", "U8", {1}}});
         write_tensors(folder, "model-00001-of-00003.safetensors", {{"b", "U8", {1}}});
         return options_for(folder.path());
       }},
      {CheckRule::kNoDigest, split_and([](const auto& o) { drop_digest(o, "model.norm.weight"); })},
      {CheckRule::kUnread, split_and([](const auto& o) { mark_unread(o, "model.norm.weight"); })},
      {CheckRule::kManifestInvalid,
       split_and([](const auto& o) { edit(o + kManifest, "\"xxh3\":\"", "\"xxh4\":\""); })},
      {CheckRule::kShardDiffers, file_of_split([](const auto& file) {
         const TempFolder other;
         write_tensors(other, "file", {{"model.norm.weight", "BF16", {32}}});
         fs::copy(other / "file", file, fs::copy_options::overwrite_existing);
       })},
      {CheckRule::kHeaderChanged,
       file_of_split([](const auto& o) { edit(o, R"("format":"pt")", R"("format":"tf")"); })},
      {CheckRule::kFileSize,
       file_of_split([](const auto& o) { fs::resize_file(o, fs::file_size(o) + 1); })},
      {CheckRule::kExtraFile,
       [](const TempFolder& folder) {
         const std::string output = split_sample(folder);
         fs::copy(output + kRank0, output + "/other.safetensors");
         return options_for(output + "/other.safetensors");
       }},
      {CheckRule::kNoDigest,
       [](const TempFolder& folder) {
         const std::string output = split_sample(folder);
         drop_digest(output, "model.norm.weight");  // a tensor that each file has whole
         return options_for(output + kRank1);
       }},
      {CheckRule::kUnproved, foreign({{"w", "F32", {2, 2}}, {"n", "F32", {3}}},
                                     {{"w", "F32", {2, 2}}, {"n", "F32", {3}}})},
  };
}

}  // namespace shardtool::test
