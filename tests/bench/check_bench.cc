// check_bench SHARDTOOL FOLDER [LAYERS] [ROUNDS]
//
// Times `check` with all data read against `cat` of the same files to /dev/null, in interleaved
// rounds, with the files in the page cache and without; and the headers of 94,000 tensors.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/bench/command_sample.h"
#include "tests/bench/llama_checkpoint.h"
#include "tests/bench/rounds.h"

namespace {

namespace fs = std::filesystem;
using shardtool::i64;
using namespace shardtool::bench;

void measure_headers(const std::string& tool, const std::string& folder, int rounds) {
  write_deepseek_header(folder, 94'000);
  std::vector<double> walls;
  i64 peak = 0;
  for (int round = 0; round < rounds; ++round) {
    const Sample sample = run(fmt::format("{} check {} --exit-zero -q > /dev/null", tool, folder));
    walls.push_back(sample.wall);
    peak = std::max(peak, sample.peak_rss);
  }
  fmt::print("headers of 94,000 tensors: {:.0f} ms, {:.1f} MiB\n", 1e3 * median(walls),
             static_cast<double>(peak) / (1 << 20));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: check_bench SHARDTOOL FOLDER [LAYERS] [ROUNDS]\n");
    return 2;
  }
  const std::string tool = argv[1];
  const std::string folder = argv[2];
  const int layers = argc > 3 ? std::atoi(argv[3]) : 7;
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 5;
  fs::remove_all(folder);
  measure_headers(tool, folder + "/many", rounds);
  fs::remove_all(folder);
  const double gigabytes = write_parted_llama(tool, folder, {layers, false}, false) / 1e9;
  fmt::print("{:.2f} GB, {} layers of Llama-3.1-8B, BF16, {} rounds\n", gigabytes, layers, rounds);
  // The pseudo-random bytes contain every BF16 pattern, including NaN.
  const auto check = [&](const std::string& path) {
    return fmt::format("{} check {} --read-data --exit-zero -q > /dev/null", tool, path);
  };
  const std::vector<Method> methods{
      {"cat > /dev/null", fmt::format("cat {}/whole/*.safetensors > /dev/null", folder)},
      {"check --read-data, whole", check(folder + "/whole")},
      {"check --read-data, tp=4", check(folder + "/tp4")}};
  for (const bool cold : {false, true}) {
    std::vector<Method> measured = methods;
    measure(measured, cold ? uncached(folder) : cached(folder), rounds);
    print_table(cold ? "files not in the page cache" : "files in the page cache", measured,
                gigabytes);
  }
  fs::remove_all(folder);
  return 0;
}
