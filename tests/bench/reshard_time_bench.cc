// reshard_time_bench SHARDTOOL FOLDER [ROUNDS]
//
// Measures this machine with `plan profile calibrate`, then compares `plan`'s time for moving files
// between layouts with the measured time, with a cold source.

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/bench/command_sample.h"
#include "tests/bench/llama_checkpoint.h"
#include "tests/bench/page_cache.h"

namespace {

namespace fs = std::filesystem;
using namespace shardtool::bench;

/// One move: the source folder, and the flags of the destination.
struct Case {
  std::string source;
  std::string target;
};

class Rounds {
 public:
  Rounds(std::string tool, std::string folder, int count)
      : tool_(std::move(tool)), folder_(std::move(folder)), count_(count) {}

  /// Prints modelled and measured seconds. Returns measured / modelled.
  double compare(const Case& one) const {
    const double modelled = modelled_seconds(one);
    std::vector<double> walls;
    for (int round = 0; round < count_; ++round) walls.push_back(measured_seconds(one));
    const double ratio = median(walls) / modelled;
    fmt::print("{:<16} {:<16} {:>9.2f} s {:>9.2f} s {:>8.2f}\n", one.source, one.target, modelled,
               median(walls), ratio);
    return ratio;
  }

 private:
  double modelled_seconds(const Case& one) const {
    const std::string report = folder_ + "/plan.json";
    run(fmt::format("{} plan {}/{} {} --profile {}/here.json --json > {}", tool_, folder_,
                    one.source, one.target, folder_, report));
    constexpr double kUs = 1e-6;
    return kUs * nlohmann::json::parse(std::ifstream(report))
                     .at(nlohmann::json::json_pointer("/reshard/time/files_us"))
                     .get<double>();
  }

  double measured_seconds(const Case& one) const {
    const std::string output = folder_ + "/output";
    fs::remove_all(output);
    make_cold(folder_);
    return run(fmt::format("{} reshard {}/{} {} -o {} -q > /dev/null", tool_, folder_, one.source,
                           one.target, output))
        .wall;
  }

  std::string tool_;
  std::string folder_;
  int count_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: reshard_time_bench SHARDTOOL FOLDER [ROUNDS]\n");
    return 2;
  }
  const std::string tool = argv[1];
  const std::string folder = argv[2];
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 3;
  fs::remove_all(folder);
  fs::create_directories(folder);
  run(fmt::format("{} plan profile calibrate {} -o {}/here.json > /dev/null 2>&1", tool, folder,
                  folder));
  std::vector<Case> cases;
  for (const int layers : {1, 5}) {
    const auto whole = fmt::format("whole{}", layers);
    write_llama_checkpoint(folder + "/" + whole, {layers, false}, false);
    for (const int parts : {2, 8}) {
      const auto cut = fmt::format("tp{}-{}", parts, layers);
      run(fmt::format("{0} split {1}/{2} -o {1}/{3} --tp {4} -q > /dev/null", tool, folder, whole,
                      cut, parts));
      cases.push_back({whole, fmt::format("--to-mesh tp={}", parts)});
      cases.push_back({cut, "--to-mesh tp=4"});
      cases.push_back({cut, "--to-mesh tp=1"});
    }
  }
  fmt::print("source not in the page cache, median of {} runs\n", rounds);
  fmt::print("{:<16} {:<16} {:>11} {:>11} {:>8}\n", "from", "to", "modelled", "measured", "ratio");
  const Rounds bench(tool, folder, rounds);
  int within = 0;
  for (const Case& one : cases) {
    const double ratio = bench.compare(one);
    constexpr double kBand = 0.5;  // plan::kReshardErrorBand
    within += ratio >= 1 - kBand && ratio <= 1 + kBand ? 1 : 0;
  }
  fmt::print("{} of {} within the stated band\n", within, cases.size());
  fs::remove_all(folder);
  return 0;
}
