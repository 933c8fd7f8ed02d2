// split_bench SHARDTOOL FOLDER [LAYERS] [ROUNDS]
//
// Times split, merge and reshard against `cp` + sync of the same file, in interleaved rounds, with
// the source in the page cache and without. Then the same bytes as few tensors and as many.

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/bench/llama_checkpoint.h"
#include "tests/bench/rounds.h"

namespace {

namespace fs = std::filesystem;
using namespace shardtool::bench;

void compare_with_copying(const std::string& tool, const std::string& folder, int layers,
                          int rounds) {
  const double gigabytes = write_parted_llama(tool, folder, {layers, false}, false) / 1e9;
  fmt::print("{:.2f} GB, {} layers of Llama-3.1-8B, BF16, fsync and digests included, {} rounds\n",
             gigabytes, layers, rounds);
  const std::string output = folder + "/output";
  const auto from = [&](const char* verb, const char* source, const char* flags) {
    return fmt::format("{} {} {}/{} -o {} {} -q > /dev/null", tool, verb, folder, source, output,
                       flags);
  };
  const std::vector<Method> methods{
      {"cp + sync",
       fmt::format(
           "mkdir {0} && cp --reflink=never {1}/whole/model.safetensors {0}/m && sync {0}/m",
           output, folder)},
      {"split to tp=4", from("split", "whole", "--preset llama --mesh tp=4")},
      {"merge from tp=4", from("merge", "tp4", "")},
      {"reshard tp=4 to tp=8", from("reshard", "tp4", "--to-mesh tp=8")}};
  for (const bool cold : {false, true}) {
    std::vector<Method> measured = methods;
    measure(measured, anew(output, cold ? uncached(folder) : cached(folder)), rounds);
    print_table(cold ? "source not in the page cache" : "source in the page cache", measured,
                gigabytes);
  }
  fs::remove_all(folder);
}

/// Compares the same bytes as 300 tensors and as 93,900.
void compare_counts(const std::string& tool, const std::string& folder, int rounds) {
  const auto bytes = write_equal_tensors(folder + "/few", 300, 80 * 313);
  write_equal_tensors(folder + "/many", 300 * 313, 80);
  std::ofstream(folder + "/rows.json") << R"({"version": 1, "mesh": [{"axis": "tp", "size": 4}],
 "rules": [{"match": "**", "strategy": "rowwise"}]})";
  const std::string output = folder + "/output";
  const auto split = [&](const char* source) {
    return fmt::format("{0} split {1}/{2} -o {3} --mapping {1}/rows.json -q > /dev/null", tool,
                       folder, source, output);
  };
  std::vector<Method> methods{{"300 tensors of 6.4 MB", split("few")},
                              {"93,900 tensors of 20 kB", split("many")}};
  measure(methods, anew(output, cached(folder)), rounds);
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  print_table(fmt::format("split by rows to tp=4, {:.2f} GB in the page cache", gigabytes), methods,
              gigabytes);
  fs::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: split_bench SHARDTOOL FOLDER [LAYERS] [ROUNDS]\n");
    return 2;
  }
  const int layers = argc > 3 ? std::atoi(argv[3]) : 7;
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 5;
  compare_with_copying(argv[1], argv[2], layers, rounds);
  compare_counts(argv[1], argv[2], rounds);
  return 0;
}
