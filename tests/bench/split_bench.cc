// split_bench SHARDTOOL FOLDER [LAYERS] [ROUNDS]
//
// Times whole commands against `cp` + sync of the same file, in interleaved rounds, and prints
// seconds, GB/s, CPU seconds per GB, peak memory, and the median of the ratios of the same round.
// Then the same bytes as few tensors and as many.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/bench/command_sample.h"
#include "tests/bench/llama_checkpoint.h"
#include "tests/bench/page_cache.h"

namespace {

namespace fs = std::filesystem;
using shardtool::i64;
using shardtool::bench::make_cold;
using shardtool::bench::make_warm;
using shardtool::bench::median;
using shardtool::bench::run;
using shardtool::bench::Sample;

struct Method {
  std::string name;
  std::string command;
  std::function<void()> prepare;
  std::vector<Sample> samples;
};

template <class Get>
double median_of(const std::vector<Sample>& samples, Get get) {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(get(sample));
  return median(values);
}

/// The first method is the copy that the others are held against.
void print_table(const std::vector<Method>& methods, double gigabytes) {
  fmt::print("{:<34} {:>8} {:>7} {:>10} {:>9}  {}\n", "method", "seconds", "GB/s", "CPU s/GB",
             "peak MiB", "speed against the copy (median of rounds, min..max)");
  for (const Method& method : methods) {
    std::vector<double> ratios;
    for (size_t r = 0; r < method.samples.size(); ++r) {
      ratios.push_back(methods.front().samples[r].wall / method.samples[r].wall);
    }
    const double wall = median_of(method.samples, [](const Sample& s) { return s.wall; });
    const double cpu = median_of(method.samples, [](const Sample& s) { return s.cpu; });
    const double rss =
        median_of(method.samples, [](const Sample& s) { return static_cast<double>(s.peak_rss); });
    fmt::print("{:<34} {:>8.2f} {:>7.2f} {:>10.3f} {:>9.1f}  {:.2f}x ({:.2f}..{:.2f})\n",
               method.name, wall, gigabytes / wall, cpu / gigabytes, rss / (1 << 20),
               median(ratios), *std::min_element(ratios.begin(), ratios.end()),
               *std::max_element(ratios.begin(), ratios.end()));
  }
}

void measure(std::vector<Method>& methods, const std::string& output, int rounds) {
  for (int round = -1; round < rounds; ++round) {
    for (Method& method : methods) {
      fs::remove_all(output);
      sync();
      method.prepare();
      const Sample sample = run(method.command);
      if (round >= 0) method.samples.push_back(sample);  // the first round warms up
    }
  }
  fs::remove_all(output);
}

/// The same bytes as 300 tensors and as 94,000.
void compare_counts(const std::string& tool, const std::string& folder, int rounds) {
  const std::string few = folder + "/few";
  const std::string many = folder + "/many";
  const i64 bytes = shardtool::bench::write_equal_tensors(few, 300, 80 * 313);
  shardtool::bench::write_equal_tensors(many, 300 * 313, 80);
  std::ofstream(folder + "/rows.json") << R"({"version": 1, "mesh": [{"axis": "tp", "size": 4}],
 "rules": [{"match": "**", "strategy": "rowwise"}]})";
  const std::string output = folder + "/output";
  const auto split = [&](const std::string& source) {
    return fmt::format("{} split {} -o {} --mapping {}/rows.json -q > /dev/null", tool, source,
                       output, folder);
  };
  const auto warm = [&] {
    make_warm(few);
    make_warm(many);
  };
  std::vector<Method> methods{{"300 tensors of 6.4 MB", split(few), warm, {}},
                              {"93,900 tensors of 20 kB", split(many), warm, {}}};
  measure(methods, output, rounds);
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  fmt::print("\nsplit by rows to tp=4, {:.2f} GB in the page cache\n", gigabytes);
  print_table(methods, gigabytes);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: split_bench SHARDTOOL FOLDER [LAYERS] [ROUNDS]\n");
    return 2;
  }
  const std::string tool = argv[1];
  const std::string folder = argv[2];
  const int layers = argc > 3 ? std::atoi(argv[3]) : 7;
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 5;
  const std::string whole = folder + "/whole";
  const std::string parts = folder + "/tp4";
  const std::string output = folder + "/output";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const i64 bytes = shardtool::bench::write_llama_checkpoint(whole, {layers, false}, false);
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  run(fmt::format("{} split {} -o {} --preset llama --mesh tp=4 -q > /dev/null", tool, whole,
                  parts));
  fmt::print(
      "{:.2f} GB, {} layers of Llama-3.1-8B, BF16, fsync and digests included, {} rounds\n\n",
      gigabytes, layers, rounds);

  const std::string copy = fmt::format(
      "mkdir {0} && cp --reflink=never {1}/model.safetensors {0}/m && sync {0}/m", output, whole);
  const std::string split = fmt::format(
      "{} split {} -o {} --preset llama --mesh tp=4 -q > /dev/null", tool, whole, output);
  const std::string merge = fmt::format("{} merge {} -o {} -q > /dev/null", tool, parts, output);
  const std::string reshard =
      fmt::format("{} reshard {} --to-mesh tp=8 -o {} -q > /dev/null", tool, parts, output);
  const auto warm = [&] {
    make_warm(whole);
    make_warm(parts);
  };
  const auto cold = [&] {
    make_cold(whole);
    make_cold(parts);
  };
  std::vector<Method> hot{{"cp + sync", copy, warm, {}},
                          {"split to tp=4", split, warm, {}},
                          {"merge from tp=4", merge, warm, {}},
                          {"reshard tp=4 to tp=8", reshard, warm, {}}};
  measure(hot, output, rounds);
  fmt::print("source in the page cache\n");
  print_table(hot, gigabytes);
  std::vector<Method> from_disk{{"cp + sync", copy, cold, {}},
                                {"split to tp=4", split, cold, {}},
                                {"merge from tp=4", merge, cold, {}},
                                {"reshard tp=4 to tp=8", reshard, cold, {}}};
  measure(from_disk, output, rounds);
  fmt::print("\nsource not in the page cache\n");
  print_table(from_disk, gigabytes);
  fs::remove_all(folder);
  compare_counts(tool, folder, rounds);
  fs::remove_all(folder);
  return 0;
}
