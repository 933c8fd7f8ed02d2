#include "tests/bench/rounds.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tests/bench/page_cache.h"

namespace shardtool::bench {
namespace {

template <class Member>
double median_of(const std::vector<Sample>& samples, Member member) {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(sample.*member);
  return median(std::move(values));
}

/// Speed relative to the first method of the same round.
std::vector<double> ratios(const Method& first, const Method& method) {
  std::vector<double> speeds;
  for (size_t r = 0; r < method.samples.size(); ++r) {
    speeds.push_back(first.samples[r].wall / method.samples[r].wall);
  }
  return speeds;
}

i64 peak_rss(const Method& method) {
  i64 peak = 0;
  for (const Sample& sample : method.samples) peak = std::max(peak, sample.peak_rss);
  return peak;
}

}  // namespace

Preparation cached(const std::string& folder) {
  return [folder] { make_warm(folder); };
}

Preparation uncached(const std::string& folder) {
  return [folder] { make_cold(folder); };
}

Preparation anew(const std::string& output, const Preparation& cache) {
  return [output, cache] {
    std::filesystem::remove_all(output);
    sync();
    cache();
  };
}

void measure(std::vector<Method>& methods, const Preparation& prepare, int rounds) {
  for (int round = -1; round < rounds; ++round) {
    for (Method& method : methods) {
      prepare();
      const Sample sample = run(method.command, method.expected_status);
      if (round >= 0) method.samples.push_back(sample);
    }
  }
}

void print_table(const std::string& title, const std::vector<Method>& methods, double gigabytes) {
  fmt::print(
      "\n{}\n{:<34} {:>8} {:>7} {:>8} {:>9}  speed against {} (median of rounds, min..max)\n",
      title, "method", "seconds", "GB/s", "CPU s/GB", "peak MiB", methods.front().name);
  for (const Method& method : methods) {
    const double wall = median_of(method.samples, &Sample::wall);
    const std::vector<double> speeds = ratios(methods.front(), method);
    fmt::print("{:<34} {:>8.2f} {:>7.2f} {:>8.3f} {:>9.1f}  {:.2f}x ({:.2f}..{:.2f})\n",
               method.name, wall, gigabytes / wall,
               median_of(method.samples, &Sample::cpu) / gigabytes,
               static_cast<double>(peak_rss(method)) / (1 << 20), median(speeds),
               *std::min_element(speeds.begin(), speeds.end()),
               *std::max_element(speeds.begin(), speeds.end()));
  }
}

}  // namespace shardtool::bench
