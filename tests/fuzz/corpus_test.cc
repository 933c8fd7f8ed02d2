// Runs the corpus of fuzzing inputs in every build, with every compiler.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "tests/fuzz/targets.h"

namespace shardtool::fuzz {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, void (*)(std::string_view)> kTargets = {
    {"header", header},
    {"container", container},
    {"index", index},
    {"config", config},
    {"mapping", mapping},
    {"manifest", manifest},
    {"glob", glob},
    {"size", size},
    {"json", json},
    {"plan", plan},
    {"pickle", pickle},
    {"zip_archive", zip_archive},
    {"torch_file", torch_file},
    {"gguf", gguf},
    {"dcp", dcp},
};

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("every target has a corpus, and its properties hold for all of it") {
  const fs::path corpora = SHARDTOOL_CORPUS;
  for (const auto& folder : fs::directory_iterator(corpora)) {
    CAPTURE(folder.path().string());
    CHECK(kTargets.contains(folder.path().filename()));
  }
  for (const auto& [name, target] : kTargets) {
    int inputs = 0;
    for (const auto& file : fs::directory_iterator(corpora / name)) {
      CAPTURE(file.path().string());
      CHECK_NOTHROW(target(content(file.path())));
      ++inputs;
    }
    CAPTURE(name);
    CHECK(inputs > 0);
  }
}

}  // namespace
}  // namespace shardtool::fuzz
