// header_bench SHARDTOOL FOLDER [ROUNDS]
//
// Times commands that read headers only: start-up, a checkpoint of 94,000 tensors (DeepSeek-V3's
// names and shapes, a hole for data), and an 84 MB header of 1.4 million overlapping tensors. Then
// the reading and checking of a header of 100,000 tensors alone.

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lib/format/safetensors/safetensors.h"
#include "tests/bench/command_sample.h"
#include "tests/bench/llama_checkpoint.h"

namespace {

namespace fs = std::filesystem;
using shardtool::i64;
using namespace shardtool::bench;

/// Writes a header in which every tensor claims the same bytes.
void write_overlapping(const std::string& path, i64 tensors) {
  std::string header = "{";
  for (i64 t = 0; t < tensors; ++t) {
    header += fmt::format(R"({}"t{:07}":{{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                          t == 0 ? "" : ",", t);
  }
  header += "}";
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  std::ofstream(path, std::ios::binary) << length << header << "data";
}

void report(const std::string& name, const std::string& command, int expected, int rounds) {
  std::vector<double> walls;
  i64 peak = 0;
  for (int round = 0; round < rounds; ++round) {
    const Sample sample = run(command, expected);
    walls.push_back(sample.wall);
    peak = std::max(peak, sample.peak_rss);
  }
  fmt::print("{:<44} {:>8.1f} ms {:>9.1f} MiB\n", name, 1e3 * median(walls),
             static_cast<double>(peak) / (1 << 20));
}

void report_reading(const std::string& folder, i64 tensors, int rounds) {
  write_deepseek_header(folder, tensors);
  const shardtool::store::File file = shardtool::store::open_read(folder + "/model.safetensors");
  std::vector<double> walls;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const auto header = shardtool::format::safetensors::read_header(file);
    const auto end = std::chrono::steady_clock::now();
    if (static_cast<i64>(header.entries.size()) != tensors) std::abort();
    walls.push_back(std::chrono::duration<double>(end - start).count());
  }
  fmt::print("{:<44} {:>8.1f} ms\n", fmt::format("header of {} tensors alone", tensors),
             1e3 * median(walls));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: header_bench SHARDTOOL FOLDER [ROUNDS]\n");
    return 2;
  }
  const std::string tool = argv[1];
  const std::string folder = argv[2];
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 7;
  fs::remove_all(folder);
  fs::create_directories(folder);
  write_deepseek_header(folder + "/many", 94'000);
  write_overlapping(folder + "/overlapping.safetensors", 1'400'000);
  fmt::print("median of {} runs, peak memory; exec through sh costs about a millisecond\n", rounds);
  report("--version", fmt::format("exec {} --version > /dev/null", tool), 0, rounds);
  report("inspect, 94,000 tensors",
         fmt::format("exec {} inspect {}/many > /dev/null", tool, folder), 0, rounds);
  report("inspect --json, 94,000 tensors",
         fmt::format("exec {} inspect {}/many --json > /dev/null", tool, folder), 0, rounds);
  report("hostile header refused (exit 4)",
         fmt::format("exec {} inspect {}/overlapping.safetensors 2> /dev/null", tool, folder), 4,
         rounds);
  report_reading(folder + "/alone", 100'000, rounds);
  fs::remove_all(folder);
  return 0;
}
