// validate_bench SHARDTOOL FOLDER [LAYERS] [ROUNDS]
//
// Times `validate` and plain reading of the same files to /dev/null, in interleaved rounds: `cat`
// with the files in the page cache, and direct reads of 4 MiB, the speed of the disk, without. Both
// read the whole model and its shards. Then runs a model with the widths of 70B, with holes for
// data, of one layer and of three, to measure memory and the time of a layer.

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/bench/command_sample.h"
#include "tests/bench/llama_checkpoint.h"
#include "tests/bench/rounds.h"

namespace {

namespace fs = std::filesystem;
using namespace shardtool::bench;

/// Status of an undecided verdict: the pseudo-random bytes contain NaN.
constexpr int kUndecided = 1;

std::string validate(const std::string& tool, const std::string& folder, const char* flags) {
  return fmt::format("{0} validate {1}/tp4 -r {1}/whole {2} -q > /dev/null", tool, folder, flags);
}

void measure_against_reading(const std::string& tool, const std::string& folder, int layers,
                             int rounds) {
  const double gigabytes = 2 * write_parted_llama(tool, folder, {layers, false}, false) / 1e9;
  fmt::print("{:.2f} GB twice, {} layers of Llama-3.1-8B, BF16, {} rounds\n", gigabytes / 2, layers,
             rounds);
  const std::string files = fmt::format("{0}/whole/*.safetensors {0}/tp4/*.safetensors", folder);
  const Method cat{"cat > /dev/null", fmt::format("cat {} > /dev/null", files)};
  const Method direct{
      "dd iflag=direct bs=4M",
      fmt::format("for f in {}; do dd if=$f of=/dev/null bs=4M iflag=direct status=none; done",
                  files)};
  const std::vector<Method> ours{
      {"validate --quick (field)", validate(tool, folder, "--quick"), kUndecided},
      {"validate (field and f64)", validate(tool, folder, ""), kUndecided}};
  for (const bool cold : {false, true}) {
    std::vector<Method> measured{cold ? direct : cat};
    if (cold) measured.push_back(cat);
    measured.insert(measured.end(), ours.begin(), ours.end());
    measure(measured, cold ? uncached(folder) : cached(folder), rounds);
    print_table(cold ? "files not in the page cache" : "files in the page cache", measured,
                gigabytes);
  }
}

/// Holes read as zeros, which the field treats like other numbers; no disk is involved.
void measure_large(const std::string& tool, const std::string& folder) {
  fmt::print(
      "\nwidths of Llama-3.1-70B, holes for data, validate --quick\n{:>6} {:>8} {:>8} {:>7} "
      "{:>9}\n",
      "layers", "GB twice", "seconds", "CPU s", "peak MiB");
  for (const int layers : {1, 3}) {
    const double bytes = 2 * write_parted_llama(tool, folder, {layers, true, kLlama70B}, true);
    const Sample sample = run(validate(tool, folder, "--quick"));
    fmt::print("{:>6} {:>8.2f} {:>8.2f} {:>7.2f} {:>9.1f}\n", layers, bytes / 1e9, sample.wall,
               sample.cpu, static_cast<double>(sample.peak_rss) / (1 << 20));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: validate_bench SHARDTOOL FOLDER [LAYERS] [ROUNDS]\n");
    return 2;
  }
  const int layers = argc > 3 ? std::atoi(argv[3]) : 7;
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 5;
  measure_against_reading(argv[1], argv[2], layers, rounds);
  measure_large(argv[1], argv[2]);
  fs::remove_all(argv[2]);
  return 0;
}
