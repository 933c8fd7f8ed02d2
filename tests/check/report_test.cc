#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "lib/base/error.h"
#include "lib/check/rank_names.h"
#include "lib/store/reader.h"
#include "tests/check/broken_checkpoints.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/throws.h"

namespace shardtool::test {
namespace {

namespace fs = std::filesystem;
using check::CheckRule;
using check::Severity;

TEST_CASE("everything that is wrong is found at once, in all files") {
  const TempFolder folder;
  write_tensors(folder, "1.safetensors", {{"a", "U8", {1}}});
  folder.write("2.safetensors", "short");
  folder.write("3.safetensors",
               safetensors_bytes(R"({"c":{"dtype":"F31","shape":[1],"data_offsets":[1,2]},)"
                                 R"("d":{"dtype":"U8","shape":[3],"data_offsets":[2,4]}})",
                                 "xxxxx"));
  folder.write("model.safetensors.index.json",
               R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors","c":"3.safetensors",)"
               R"("d":"3.safetensors","e":"4.safetensors","f":"../5.safetensors"}})");
  const api::CheckReport report = api::check(options_for(folder.path()));
  for (const CheckRule rule :
       {CheckRule::kHeaderLength, CheckRule::kDtype, CheckRule::kTensorSize, CheckRule::kHole,
        CheckRule::kTrailingBytes, CheckRule::kFileMissing, CheckRule::kPathTraversal}) {
    CAPTURE(check::rule_info(rule).id);
    CHECK(count_of(report, rule) == 1);
  }
  CHECK(report.errors >= 7);
}

TEST_CASE("of many findings the first are kept and all are counted") {
  const TempFolder folder;
  std::vector<WrittenTensor> tensors;
  for (int i = 0; i < 3000; ++i) tensors.push_back({"w" + std::to_string(i), "U8", {1}});
  write_tensors(folder, "model.safetensors", tensors);
  folder.write("model.safetensors.index.json", R"({"weight_map":{"w0":"model.safetensors"}})");
  api::CheckOptions options = options_for(folder.path());
  options.mapping.emplace();
  options.mapping->path =
      folder.write("mapping.json",
                   R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}], "rules": [
          {"match": "w*", "strategy": "replicate"},
          {"match": "*", "strategy": "replicate"}]})");
  const api::CheckReport report = api::check(options);
  CHECK(count_of(report, CheckRule::kAmbiguousRule) == 3000);
  CHECK(std::count_if(report.findings.begin(), report.findings.end(), [](const auto& finding) {
          return finding.rule == CheckRule::kAmbiguousRule;
        }) == check::Findings::kKeptPerRule);
}

TEST_CASE("a size of config.json that is no positive integer is one finding") {
  const TempFolder folder;
  const std::string model = copy_sample(folder);
  const std::string config = model + "/config.json";
  for (const auto& [key, right] :
       std::vector<std::pair<std::string, std::string>>{{"vocab_size", "1000"},
                                                        {"hidden_size", "64"},
                                                        {"intermediate_size", "176"},
                                                        {"num_hidden_layers", "2"},
                                                        {"num_attention_heads", "8"},
                                                        {"num_key_value_heads", "2"},
                                                        {"head_dim", "8"}}) {
    const auto entry = [&, name = key](const std::string& value) {
      return fmt::format("\"{}\": {},", name, value);
    };
    for (const std::string wrong : {"0", "-1", "8.5", "true", "[8]", "\"two\""}) {
      CAPTURE(key);
      CAPTURE(wrong);
      edit(config, entry(right), entry(wrong));
      const api::CheckReport report = api::check(options_for(model));
      edit(config, entry(wrong), entry(right));
      REQUIRE(report.findings.size() == 1);
      CHECK(report.findings[0].rule == CheckRule::kConfigInvalid);
      CHECK(report.findings[0].message ==
            fmt::format("'{}' in config.json is not a positive integer", key));
      CHECK(report.findings[0].found == wrong);
    }
  }
}

TEST_CASE("a config.json from elsewhere is held against the model, and needs no mesh") {
  const TempFolder folder;
  const std::string model = copy_sample(folder);
  std::filesystem::rename(model + "/config.json", folder / "config.json");
  api::CheckOptions options = options_for(model);
  options.mapping.emplace().config = folder / "config.json";
  CHECK(api::check(options).errors == 0);
  edit(folder / "config.json", R"("intermediate_size": 176)", R"("intermediate_size": 177)");
  const api::CheckReport wrong = api::check(options);
  REQUIRE(wrong.errors > 0);
  CHECK(wrong.findings.front().file == folder / "config.json");
  options.mapping->mesh = mesh::parse_mesh("tp=2");
  CHECK(api::check(options).errors >= wrong.errors);
}

TEST_CASE("shards of unknown tensors are not held against config.json") {
  const TempFolder folder;
  const std::string output = split_sample(folder);
  edit(output + "/manifest.json", "\"tensors\":", "\"tensor\":");
  const api::CheckReport invalid = api::check(options_for(output));
  REQUIRE(invalid.rules.size() == 1);
  CHECK(invalid.rules[0].rule == CheckRule::kManifestInvalid);
  std::filesystem::remove(output + "/manifest.json");
  std::filesystem::remove(output + "/model-rank-1-part-0.safetensors");
  for (const check::RuleCount& row : api::check(options_for(output)).rules)
    CHECK_FALSE(check::rule_info(row.rule).id.starts_with("ST04"));
}

TEST_CASE("tensors of rank files that match no rule do not count as fitting the mapping") {
  const TempFolder folder;
  for (const char* file : {"model-rank-0-part-0.safetensors", "model-rank-1-part-0.safetensors"})
    write_tensors(folder, file, {{"n", "F32", {2}}, {"u", "F32", {2}}, {"w", "F32", {2, 2}}});
  api::CheckOptions options = options_for(folder.path());
  options.mapping.emplace();
  options.mapping->path =
      folder.write("mapping.json", R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
          "rules": [{"match": "w", "strategy": {"type": "rowwise", "over": "tp"}},
                    {"match": "n", "strategy": "replicate"}]})");
  const api::CheckReport report = api::check(options);
  REQUIRE(report.rules.size() == 2);
  CHECK(count_of(report, CheckRule::kNoRule) == 1);
  const auto note = std::ranges::find(report.findings, CheckRule::kUnproved, &check::Finding::rule);
  REQUIRE(note != report.findings.end());
  CHECK(note->message.starts_with("the shapes of 2 of 3 tensors fit the mapping"));
}

TEST_CASE("only a pickle of the model's own name may be a copy of the weights") {
  const TempFolder folder;
  const std::string model = copy_sample(folder);
  for (const char* name :
       {"/optimizer.pt", "/training_args.bin", "/pytorch_model.bin", "/common.pt"})
    std::filesystem::copy(model + "/config.json", model + name);
  int copies = 0;
  for (const check::Finding& finding : api::check(options_for(model)).findings) {
    // Megatron needs it where it is.
    if (finding.file.ends_with("/common.pt"))
      CHECK(finding.fix.find("elsewhere") == std::string::npos);
    if (finding.rule != CheckRule::kPickle || !finding.fix.starts_with("delete")) continue;
    CHECK(finding.file.ends_with("/pytorch_model.bin"));
    ++copies;
  }
  CHECK(copies == 1);
}

TEST_CASE("a link without a target is a missing file") {
  const TempFolder folder;
  const std::string model = copy_sample(folder);
  std::filesystem::remove(model + "/config.json");
  std::filesystem::create_symlink("nowhere", model + "/config.json");
  const api::CheckReport report = api::check(options_for(model));
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].rule == CheckRule::kFileMissing);
  CHECK(report.findings[0].file == model + "/config.json");
}

TEST_CASE("profiles and --ignore change what a rule weighs") {
  const check::Profile none("");
  const check::Profile strict("strict");
  const check::Profile vllm("vllm");
  CHECK(none.severity(CheckRule::kUneven) == Severity::kNote);
  CHECK(strict.severity(CheckRule::kUneven) == Severity::kWarning);
  CHECK(strict.severity(CheckRule::kFileTooLarge) == Severity::kNote);
  CHECK(vllm.severity(CheckRule::kUneven) == Severity::kError);
  CHECK(none.severity(CheckRule::kFileTooLarge) == Severity::kOff);
  CHECK(check::Profile("hf").severity(CheckRule::kFramework) == Severity::kWarning);
  CHECK_ERROR(kUsage, check::Profile("vlm"));
  check::Profile some("");
  some.ignore("st04");
  some.ignore("ST0301");
  CHECK(some.severity(CheckRule::kHeads) == Severity::kOff);
  CHECK(some.severity(CheckRule::kCoverageGap) == Severity::kOff);
  CHECK(some.severity(CheckRule::kPartialOverlap) == Severity::kWarning);
  CHECK_ERROR(kUsage, (some.ignore("ST"), 0));
  CHECK_ERROR(kUsage, (some.ignore("ST9"), 0));
}

TEST_CASE("the hub takes files of up to 500 GB") {
  const TempFolder folder;
  for (const auto& [bytes, is_too_large] :
       {std::pair{i64{200'000'000'000}, false}, std::pair{i64{500'000'000'000}, true}}) {
    CAPTURE(bytes);
    const std::string header =
        fmt::format(R"({{"a":{{"dtype":"U8","shape":[{0}],"data_offsets":[0,{0}]}}}})", bytes);
    const std::string path = folder.write("m.safetensors", safetensors_bytes(header, ""));
    std::filesystem::resize_file(
        path, std::filesystem::file_size(path) + static_cast<std::uintmax_t>(bytes));
    api::CheckOptions options;
    options.sources = {path};
    options.profile = "hub";
    const auto findings = api::check(options).findings;
    CHECK(std::ranges::any_of(findings, [](const check::Finding& finding) {
            return finding.rule == CheckRule::kFileTooLarge;
          }) == is_too_large);
  }
}

TEST_CASE("names of ranks are read in the ways of several engines") {
  const auto rank = [](std::string_view name) {
    const auto found = check::parse_rank_name(name);
    return found ? found->rank : -1;
  };
  CHECK(rank("model-rank-12-part-3.safetensors") == 12);
  CHECK(check::parse_rank_name("model-rank-12-part-3.safetensors")->part == 3);
  CHECK(rank("rank7.safetensors") == 7);
  CHECK(rank("model3-mp8.safetensors") == 3);
  CHECK(check::parse_rank_name("model3-mp8.safetensors")->ranks == 8);
  CHECK(rank("pytorch_model-00001-TP-005.safetensors") == 5);
  CHECK(rank("mp_rank_03") == 3);
  CHECK(rank("rank_0") == 0);
  CHECK(rank("model-00001-of-00002.safetensors") == -1);
  CHECK(rank("rank99999999999999999999.safetensors") == -1);
  CHECK(check::parse_part_name("m-00001-of-00012.safetensors")->second == 12);
  CHECK(check::parse_part_name("shard-00002-m-00001-of-00012.safetensors") ==
        check::parse_part_name("shard-00001-m-00001-of-00012.safetensors"));
}

TEST_CASE("parts of one split in folders of their own are checked together") {
  const TempFolder folder;
  api::CheckOptions options = options_for(split_sample(folder, {0}));
  CHECK(count_of(api::check(options), CheckRule::kMissingRank) == 1);
  options.sources.push_back(split_sample(folder, {1}));
  const api::CheckReport both = api::check(reading(options));
  CHECK(both.findings.empty());
  CHECK(both.files == 2);
  options.sources.push_back(options.sources.front());
  CHECK(count_of(api::check(options), CheckRule::kMixedCheckpoints) == 1);
}

TEST_CASE("a folder that does not belong to the others hides none of their ranks") {
  const TempFolder folder;
  const std::string all = split_sample(folder);
  const std::string first = split_sample(folder, {0});
  const std::string second = split_sample(folder, {1});
  const std::vector<std::string> cases[] = {
      {all, second}, {second, all}, {first, second, first}, {first, first, second}};
  for (const std::vector<std::string>& sources : cases) {
    api::CheckOptions options;
    options.sources = sources;
    const api::CheckReport report = api::check(options);
    CHECK(count_of(report, CheckRule::kMixedCheckpoints) == 1);
    CHECK(count_of(report, CheckRule::kMissingRank) == 0);
    CHECK(report.files == 2);
  }
}

TEST_CASE("a rank that lost its file does not hide what is wrong with the others") {
  const TempFolder folder;
  const std::string output = split_sample(folder);
  std::filesystem::remove(output + "/model-rank-1-part-0.safetensors");
  const api::CheckReport report = api::check(reading(options_for(output)));
  CHECK(report.errors == 1);
  CHECK(report.bytes_read > 0);
}

TEST_CASE(
    "an uneven cut is announced, for the checkpoint that has it and the mapping that makes it") {
  const TempFolder folder;
  api::SplitOptions split;
  split.source = SHARDTOOL_SAMPLE;
  split.mapping.path =
      folder.write("mapping.json",
                   R"({"version": 1, "mesh": [{"axis": "tp", "size": 3}], "rules": [
          {"match": "**.{gate,up}_proj.weight", "strategy": {"type": "rowwise", "over": "tp"}},
          {"match": "lm_head.weight", "strategy": "replicate"},
          {"match": "**.{embed_tokens,norm,q_proj,k_proj,v_proj,o_proj,down_proj}.weight",
           "strategy": "replicate"},
          {"match": "**layernorm.weight", "strategy": "replicate"}]})");
  split.write.output = folder / "tp3";
  api::split(split);
  const api::CheckReport output = api::check(reading(options_for(split.write.output)));
  REQUIRE(output.findings.size() == 1);
  CHECK(output.findings.front().rule == CheckRule::kUneven);
  CHECK(output.findings.front().found == "shards of 59+59+58");
  CHECK(output.findings.front().axis == 0);
  api::CheckOptions mapped = options_for(SHARDTOOL_SAMPLE);
  mapped.mapping = split.mapping;
  CHECK(count_of(api::check(mapped), CheckRule::kUneven) == 1);
}

TEST_CASE("a weights file behind a link out of the folder is told") {
  const TempFolder folder;
  const std::string model = copy_sample(folder);
  const std::string file = model + "/model-00001-of-00002.safetensors";
  std::filesystem::rename(file, folder / "elsewhere");
  std::filesystem::create_symlink("../elsewhere", file);
  CHECK(count_of(api::check(options_for(model)), CheckRule::kLinkOutside) == 1);
}

TEST_CASE("whole shapes are found for shards without a manifest, replicated heads included") {
  const TempFolder folder;
  api::SplitOptions split;
  split.source = SHARDTOOL_SAMPLE;
  split.mapping.preset = "llama";
  split.mapping.mesh = mesh::parse_mesh("tp=8");  // two KV heads, four copies of each
  split.write.output = folder / "tp8";
  api::split(split);
  std::filesystem::remove(split.write.output + "/manifest.json");
  api::CheckOptions options = reading(options_for(split.write.output));
  options.mapping = split.mapping;
  const api::CheckReport good = api::check(options);
  CHECK(good.errors == 0);
  CHECK(good.warnings == 0);
  CHECK(count_of(good, CheckRule::kUnproved) == 1);
  CHECK(good.bytes_read == good.bytes);
  // Compares the replicas that the shapes imply.
  const std::string file = split.write.output + "/model-rank-7-part-0.safetensors";
  std::string bytes = read_file(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  folder.write("tp8/model-rank-7-part-0.safetensors", bytes);
  const api::CheckReport damaged = api::check(options);
  CHECK(count_of(damaged, CheckRule::kReplicasDiffer) == 1);
  CHECK(damaged.findings.size() == 2);
}

TEST_CASE("one file of several is checked, but not as a model") {
  const std::string file = std::string(SHARDTOOL_SAMPLE) + "/model-00002-of-00002.safetensors";
  const api::CheckReport report = api::check(reading(options_for(file)));
  CHECK(report.findings.empty());
  CHECK(report.files == 1);
  const std::string index = std::string(SHARDTOOL_SAMPLE) + "/model.safetensors.index.json";
  CHECK(api::check(options_for(index)).files == 2);
}

TEST_CASE("a merge of files without a mapping has no findings") {
  const TempFolder folder;
  api::MergeOptions options;
  options.sources = {SHARDTOOL_SAMPLE};
  options.write.output = folder / "merged";
  for (const std::optional<Dtype> dtype : {std::optional<Dtype>(), std::optional(Dtype::kF32)}) {
    options.write.dtype = dtype;
    options.write.force = true;
    api::merge(options);
    const api::CheckReport report = api::check(reading(options_for(options.write.output)));
    CHECK(report.findings.empty());
  }
}

TEST_CASE("a recorded mapping that does not make the shards is a finding") {
  const TempFolder folder;
  const std::string output = split_sample(folder);
  const std::string path = output + "/manifest.json";
  const std::string good = store::read_source_text(path, 1 << 20);
  CHECK(api::check(options_for(output)).errors == 0);
  const std::vector<std::pair<std::string, std::string>> edits{
      {R"("mapping":[)", R"("mqpping":[)"},
      {R"({"document":)", R"({"documemt":)"},
      {R"("groups":"kv_heads")", R"("grouqs":"kv_heads")"},
      {R"("mlp":"tp")", R"("mlp":null)"}};
  for (const auto& [from, to] : edits) {
    CAPTURE(to);
    std::string bad = good;
    const size_t at = bad.find(from);
    REQUIRE(at != bad.npos);
    std::ofstream(path) << bad.replace(at, from.size(), to);
    const api::CheckReport report = api::check(options_for(output));
    CHECK(report.errors == 1);
    CHECK(count_of(report, CheckRule::kManifestInvalid) == 1);
  }
}

TEST_CASE("a path that holds nothing to check is an error, not a finding") {
  const TempFolder folder;
  CHECK_ERROR(kFileMissing, api::check(options_for(folder / "gone")));
  CHECK_ERROR(kFileMissing, api::check(options_for(folder.path())));
}

TEST_CASE("all files of a folder one by one are refused, and the folder is named") {
  const TempFolder folder;
  const std::string output = split_sample(folder);
  folder.write(output.substr(folder.path().size()) + "/README.md", "# A model");
  api::CheckOptions options;
  for (const auto& entry : fs::directory_iterator(output)) {
    options.sources.push_back(entry.path().string());
  }
  const auto error = testing::error_of([&] { return api::check(options); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUsage);
  for (const char* name : {"/config.json", "/tokenizer_config.json", "/README.md"}) {
    CAPTURE(name);
    CHECK(error->message().find(output + name) != std::string::npos);
  }
  for (const char* name : {"manifest.json", ".safetensors"}) {
    CAPTURE(name);
    CHECK(error->message().find(name) == std::string::npos);
  }
  CHECK(error->help_lines().front().ends_with(output));
  CHECK_ERROR(kUsage, api::check(options_for(output + "/config.json")));
  std::erase_if(options.sources, [](const std::string& path) {
    return path.find("rank-") == std::string::npos && !path.ends_with("manifest.json");
  });
  CHECK(api::check(options).errors == 0);
}

TEST_CASE("among several paths one that cannot be checked hides nothing of the others") {
  const TempFolder folder;
  const std::string output = split_sample(folder);
  fs::resize_file(output + "/model-rank-1-part-0.safetensors", 20);
  const i64 alone = api::check(options_for(output)).errors;
  CHECK(alone > 0);
  fs::create_directory(folder / "empty");
  for (const std::string& bad : {folder / "gone", folder / "empty"}) {
    api::CheckOptions options = options_for(output);
    options.sources.insert(options.sources.begin(), bad);
    const api::CheckReport report = api::check(options);
    CHECK(report.errors == alone + 1);
    const auto found = std::ranges::find(report.findings, bad, &check::Finding::file);
    REQUIRE(found != report.findings.end());
    CHECK(found->rule == CheckRule::kFileUnreadable);
  }
}

}  // namespace
}  // namespace shardtool::test
