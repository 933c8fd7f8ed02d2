// check_bench SHARDTOOL FOLDER [LAYERS] [ROUNDS]
//
// Times `check` with all data read against `cat` of the same files to /dev/null, in interleaved
// rounds, with the files in the page cache and without; and the headers of 94,000 tensors.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/bench/command_sample.h"
#include "tests/bench/llama_checkpoint.h"

namespace {

namespace fs = std::filesystem;
using shardtool::i64;
using namespace shardtool::bench;

struct Method {
  std::string name;
  std::string command;
  std::vector<double> walls;
  std::vector<double> ratios;  ///< speed against the first method of the same round
  i64 peak_rss = 0;
};

void for_each_weights_file(const std::string& folder, const std::function<void(int)>& visit) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const int fd = open(entry.path().c_str(), O_RDONLY);
    visit(fd);
    close(fd);
  }
}

void make_cold(int fd) {
  fdatasync(fd);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

void make_warm(int fd) {
  static std::vector<char> block(4 << 20);
  while (read(fd, block.data(), block.size()) > 0) {
  }
}

/// The first round warms up and is not counted.
void measure(std::vector<Method>& methods, const std::string& folder, bool cold, int rounds) {
  for (int round = -1; round < rounds; ++round) {
    double first = 0;
    for (Method& method : methods) {
      for_each_weights_file(folder, cold ? make_cold : make_warm);
      const Sample sample = run(method.command);
      if (&method == &methods.front()) first = sample.wall;
      if (round < 0) continue;
      method.walls.push_back(sample.wall);
      method.ratios.push_back(first / sample.wall);
      method.peak_rss = std::max(method.peak_rss, sample.peak_rss);
    }
  }
}

void print_table(const std::string& title, const std::vector<Method>& methods, double gigabytes) {
  fmt::print("{}\n{:<34} {:>8} {:>7} {:>9}  {}\n", title, "method", "seconds", "GB/s", "peak MiB",
             "speed against cat (median of rounds, min..max)");
  for (const Method& method : methods) {
    fmt::print("{:<34} {:>8.2f} {:>7.2f} {:>9.1f}  {:.2f}x ({:.2f}..{:.2f})\n", method.name,
               median(method.walls), gigabytes / median(method.walls),
               static_cast<double>(method.peak_rss) / (1 << 20), median(method.ratios),
               *std::min_element(method.ratios.begin(), method.ratios.end()),
               *std::max_element(method.ratios.begin(), method.ratios.end()));
  }
}

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
  fs::create_directories(folder);
  measure_headers(tool, folder + "/many", rounds);
  fs::remove_all(folder + "/many");
  const std::string whole = folder + "/data/whole";
  const std::string parts = folder + "/data/tp4";
  fs::create_directories(folder + "/data");
  const i64 bytes = write_llama_checkpoint(whole, {layers, false}, false);
  run(fmt::format("{} split {} -o {} --preset llama --mesh tp=4 -q > /dev/null", tool, whole,
                  parts));
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  fmt::print("{:.2f} GB, {} layers of Llama-3.1-8B, BF16, {} rounds\n", gigabytes, layers, rounds);
  // The pseudo-random bytes hold every pattern of BF16, NaN among them.
  const auto check = [&](const std::string& path) {
    return fmt::format("{} check {} --read-data --exit-zero -q > /dev/null", tool, path);
  };
  const std::vector<Method> methods{
      {"cat > /dev/null", fmt::format("cat {}/*.safetensors > /dev/null", whole), {}, {}, 0},
      {"check --read-data, whole", check(whole), {}, {}, 0},
      {"check --read-data, tp=4", check(parts), {}, {}, 0}};
  for (const bool cold : {false, true}) {
    std::vector<Method> measured = methods;
    measure(measured, folder + "/data", cold, rounds);
    print_table(cold ? "\nfiles not in the page cache" : "\nfiles in the page cache", measured,
                gigabytes);
  }
  fs::remove_all(folder);
  return 0;
}
