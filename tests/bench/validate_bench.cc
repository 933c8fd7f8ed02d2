// validate_bench SHARDTOOL FOLDER [LAYERS] [ROUNDS]
//
// Times `validate` against `cat` of the same files to /dev/null, in interleaved rounds, with the
// files in the page cache and without. Both read the whole model and its shards.

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/bench/command_sample.h"
#include "tests/bench/llama_checkpoint.h"
#include "tests/bench/read_rounds.h"

namespace {

namespace fs = std::filesystem;
using namespace shardtool::bench;

/// Of a verdict that is no pass: the pseudo-random bytes hold NaN.
constexpr int kUndecided = 1;

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: validate_bench SHARDTOOL FOLDER [LAYERS] [ROUNDS]\n");
    return 2;
  }
  const std::string tool = argv[1];
  const std::string folder = argv[2];
  const int layers = argc > 3 ? std::atoi(argv[3]) : 7;
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 5;
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::string whole = folder + "/whole";
  const std::string parts = folder + "/tp4";
  const auto bytes = write_llama_checkpoint(whole, {layers, false}, false);
  run(fmt::format("{} split {} -o {} --preset llama --mesh tp=4 -q > /dev/null", tool, whole,
                  parts));
  const double gigabytes = 2 * static_cast<double>(bytes) / 1e9;
  fmt::print("{:.2f} GB twice, {} layers of Llama-3.1-8B, BF16, {} rounds\n", gigabytes / 2, layers,
             rounds);
  const auto validate = [&](const char* flags) {
    return fmt::format("{} validate {} -r {} {} -q > /dev/null", tool, parts, whole, flags);
  };
  const std::vector<Method> methods{
      {"cat > /dev/null",
       fmt::format("cat {0}/*.safetensors {1}/*.safetensors > /dev/null", whole, parts)},
      {"validate --quick (field)", validate("--quick"), kUndecided},
      {"validate (field and f64)", validate(""), kUndecided}};
  for (const bool cold : {false, true}) {
    std::vector<Method> measured = methods;
    measure(measured, folder, cold, rounds);
    print_table(cold ? "\nfiles not in the page cache" : "\nfiles in the page cache", measured,
                gigabytes);
  }
  fs::remove_all(folder);
  return 0;
}
