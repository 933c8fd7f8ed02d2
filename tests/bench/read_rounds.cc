#include "tests/bench/read_rounds.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "tests/bench/command_sample.h"

namespace shardtool::bench {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

void measure(std::vector<Method>& methods, const std::string& folder, bool cold, int rounds) {
  for (int round = -1; round < rounds; ++round) {
    double first = 0;
    for (Method& method : methods) {
      for_each_weights_file(folder, cold ? make_cold : make_warm);
      const Sample sample = run(method.command, method.expected_status);
      if (&method == &methods.front()) first = sample.wall;
      if (round < 0) continue;
      method.walls.push_back(sample.wall);
      method.ratios.push_back(first / sample.wall);
      method.cpu.push_back(sample.cpu);
      method.peak_rss = std::max(method.peak_rss, sample.peak_rss);
    }
  }
}

void print_table(const std::string& title, const std::vector<Method>& methods, double gigabytes) {
  fmt::print("{}\n{:<34} {:>8} {:>7} {:>8} {:>9}  speed against {} (median of rounds, min..max)\n",
             title, "method", "seconds", "GB/s", "CPU s/GB", "peak MiB", methods.front().name);
  for (const Method& method : methods) {
    fmt::print("{:<34} {:>8.2f} {:>7.2f} {:>8.2f} {:>9.1f}  {:.2f}x ({:.2f}..{:.2f})\n",
               method.name, median(method.walls), gigabytes / median(method.walls),
               median(method.cpu) / gigabytes, static_cast<double>(method.peak_rss) / (1 << 20),
               median(method.ratios), *std::min_element(method.ratios.begin(), method.ratios.end()),
               *std::max_element(method.ratios.begin(), method.ratios.end()));
  }
}

}  // namespace shardtool::bench
