#include "tests/bench/read_rounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/bench/command_sample.h"
#include "tests/bench/page_cache.h"

namespace shardtool::bench {
void measure(std::vector<Method>& methods, const std::string& folder, bool cold, int rounds) {
  for (int round = -1; round < rounds; ++round) {
    double first = 0;
    for (Method& method : methods) {
      cold ? make_cold(folder) : make_warm(folder);
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
