// Checks a single file of an output against the manifest in its folder.
#include <doctest/doctest.h>

#include <filesystem>

#include "lib/api/transform.h"
#include "tests/check/broken_checkpoints.h"

namespace shardtool::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_of(const std::string& output) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(output)) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  }
  return files;
}

std::vector<std::string> ids_of(const api::CheckReport& report) {
  std::vector<std::string> ids;
  for (const check::RuleCount& rule : report.rules) {
    ids.emplace_back(check::rule_info(rule.rule).id);
  }
  return ids;
}

std::string split_in_small_files(const TempFolder& folder, const char* mesh,
                                 const std::string& layout = "plain") {
  api::SplitOptions options;
  options.source = SHARDTOOL_SAMPLE;
  options.mapping.mesh = mesh::parse_mesh(mesh);
  options.write.layout = layout;
  options.write.output = folder / (mesh + layout);
  options.write.max_file_size = 40'000;
  api::split(options);
  return options.write.output;
}

TEST_CASE("every file of an output has no findings alone, nor have all of them named at once") {
  const TempFolder folder;
  const std::string output = split_in_small_files(folder, "tp=2");
  const auto files = files_of(output);
  REQUIRE(files.size() > 4);
  for (const std::string& file : files) {
    CAPTURE(file);
    const api::CheckReport report = api::check(reading(options_for(file)));
    CHECK(ids_of(report) == std::vector<std::string>{});
    CHECK(report.bytes > 0);
    CHECK(report.bytes_read == report.bytes);
  }
  api::CheckOptions all = reading(options_for(""));
  all.sources = files;
  const api::CheckReport report = api::check(all);
  CHECK(ids_of(report) == std::vector<std::string>{});
  CHECK(report.files == std::ssize(files));
  CHECK(report.bytes_read == api::check(reading(options_for(output))).bytes_read);
}

TEST_CASE("a file whose tensors have an engine's names has no findings alone") {
  const TempFolder folder;
  for (const char* layout : {"vllm", "sglang", "meta", "dcp-hf"}) {
    const auto files = files_of(split_in_small_files(folder, "tp=2", layout));
    REQUIRE(files.size() > 1);
    for (const std::string& file : files) {
      CAPTURE(file);
      CHECK(ids_of(api::check(reading(options_for(file)))) == std::vector<std::string>{});
    }
  }
}

TEST_CASE("a rank's file that is another rank's, or another split's, is found alone") {
  const TempFolder folder;
  const std::string output = split_sample(folder);
  const std::string file = output + "/model-rank-1-part-0.safetensors";
  const std::string four = split_in_small_files(folder, "tp=4");
  for (const std::string& other :
       {output + "/model-rank-0-part-0.safetensors", four + "/model-rank-1-part-0.safetensors"}) {
    CAPTURE(other);
    fs::copy(other, file, fs::copy_options::overwrite_existing);
    CHECK(api::check(options_for(file)).errors > 0);
  }
}

TEST_CASE("another byte of a file's data is found alone when data is read") {
  const TempFolder folder;
  const std::string file = split_sample(folder) + "/model-rank-1-part-0.safetensors";
  std::string bytes = read_file(file);
  bytes.back() ^= 1;
  fs::remove(file);
  folder.write(fs::relative(file, folder.path()).string(), bytes);
  CHECK(ids_of(api::check(options_for(file))) == std::vector<std::string>{});
  CHECK(ids_of(api::check(reading(options_for(file)))) == std::vector<std::string>{"ST0706"});
}

TEST_CASE("a manifest that is not ours says nothing about a file beside it") {
  const TempFolder folder;
  write_tensors(folder, "model.safetensors", {{"a", "U8", {1}}});
  folder.write("manifest.json", R"({"name": "an app"})");
  CHECK(api::check(options_for(folder / "model.safetensors")).errors == 0);
}

}  // namespace
}  // namespace shardtool::test
