#include "lib/api/planning/machine_rates.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>

#include "kernels/product/product.h"
#include "lib/api/transfer/scratch_folder.h"
#include "lib/base/error.h"
#include "lib/base/median.h"
#include "lib/base/text.h"
#include "lib/exec/files/raw_transfer.h"
#include "lib/exec/workers.h"
#include "lib/store/local/file.h"
#include "lib/store/local/page_cache.h"
#include "lib/store/local/syscalls.h"

namespace shardtool::api {
namespace {

constexpr double kUsPerSecond = 1e6;

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return std::max(took.count(), 1e-9);
}

/// Runs `rounds` rounds on all threads, and returns the median of the slowest thread's time per
/// round. `prepare` is called once per thread and returns the work of a round.
double seconds_of_threads(i64 threads, i64 rounds,
                          const std::function<std::function<void()>()>& prepare) {
  std::vector<double> slowest(static_cast<size_t>(rounds), 0);
  std::mutex mutex;
  exec::run_workers(threads, [&](const std::atomic<bool>&) {
    const auto work = prepare();
    work();  // warm-up: maps pages, raises the clock
    for (double& seconds : slowest) {
      const double mine = seconds_of(work);
      const std::scoped_lock lock(mutex);
      seconds = std::max(seconds, mine);
    }
  });
  return median(std::move(slowest));
}

/// Returns the time per request for each request size. `seconds` measures requests of `bytes` in
/// total.
template <class Seconds>
plan::TimeTable request_times(const StorageOptions& options, const Seconds& seconds) {
  constexpr std::array<i64, 4> kRequests{4 << 10, 64 << 10, 1 << 20, 4 << 20};
  constexpr i64 kMostRequests = 2048;
  plan::TimeTable points;
  for (const i64 request : kRequests) {
    const i64 bytes = std::min(options.bytes / request, kMostRequests) * request;
    exec::RawOptions raw;
    raw.direct_block = request;
    std::vector<double> rounds;
    for (i64 round = 0; round < options.rounds; ++round) rounds.push_back(seconds(bytes, raw));
    const double requests = static_cast<double>(bytes / request);
    points.emplace_back(request,
                        measured_digits(median(std::move(rounds)) / requests * kUsPerSecond));
  }
  return plan::rising(std::move(points));
}

}  // namespace

std::string host_class() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string model;
  for (std::string line; model.empty() && std::getline(cpuinfo, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) model = line.substr(colon + 2);
  }
  if (model.empty()) {
    utsname name{};
    uname(&name);
    model = name.machine;
  }
  return fmt::format("{}, {}, {}", model, plural(std::thread::hardware_concurrency(), "processor"),
                     format_bytes(memory_bytes()));
}

i64 memory_bytes() {
  return sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

std::string host_name() {
  utsname name{};
  uname(&name);
  return name.nodename;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  gmtime_r(&now, &date);
  return fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

double measured_digits(double value) {
  return std::stod(fmt::format("{:.4g}", value));
}

double copy_gb_per_s(i64 threads, i64 rounds) {
  constexpr i64 kBytes = 256 << 20;
  const auto each = static_cast<size_t>(kBytes / threads);
  const double seconds = seconds_of_threads(threads, rounds, [each] {
    return [from = std::vector<char>(each, 'x'), to = std::vector<char>(each, 'y')]() mutable {
      std::memcpy(to.data(), from.data(), from.size());
      // Reads the copy, so that the compiler cannot remove it.
      if (to.back() != 'x') throw Error(ErrorCode::kInternal, "a copy of other bytes");
    };
  });
  return 2 * static_cast<double>(each) * static_cast<double>(threads) / seconds / 1e9;
}

double product_tflops(i64 threads, i64 rounds) {
  constexpr i64 kRows = 256;
  constexpr i64 kColumns = 1024;
  constexpr i64 kTokens = 32;
  constexpr i64 kTimes = 16;
  const double seconds = seconds_of_threads(threads, rounds, [] {
    return [weights = std::vector<std::uint16_t>(kRows * kColumns, 0x3f80),
            x = std::vector<float>(kTokens * kColumns, 1),
            y = std::vector<float>(kTokens * kRows)]() mutable {
      const kernels::StoredMatrix w{
          Dtype::kBF16, reinterpret_cast<const std::byte*>(weights.data()), kRows, kColumns};
      for (i64 i = 0; i < kTimes; ++i) {
        kernels::multiply_rows(w, kernels::RowView<const float>{x.data(), kTokens, kColumns},
                               kernels::RowView<float>{y.data(), kTokens, kRows});
      }
      if (y.back() != static_cast<float>(kColumns))
        throw Error(ErrorCode::kInternal, "a product of ones is not their number");
    };
  });
  constexpr double kFlops = 2.0 * kRows * kColumns * kTokens * kTimes;
  return kFlops * static_cast<double>(threads) / seconds / 1e12;
}

plan::Storage storage_times(const StorageOptions& options) {
  const ScratchFolder scratch(options.folder, "calibrate");
  const std::string content = random_bytes(4 << 20);
  const std::string source = scratch / "read";
  plan::Storage storage;
  storage.write_us_of_bytes = request_times(options, [&](i64 bytes, const exec::RawOptions& raw) {
    std::vector<std::string> paths;
    for (int i = 0; i < raw.threads; ++i) paths.push_back(scratch / fmt::format("{}", i));
    const double seconds =
        seconds_of([&] { exec::write_files(paths, bytes / raw.threads, content, raw); });
    for (const std::string& path : paths) store::syscalls().unlinkat(AT_FDCWD, path.c_str(), 0);
    return seconds;
  });
  storage.read_us_of_bytes = request_times(options, [&](i64 bytes, const exec::RawOptions& raw) {
    exec::write_files({source}, bytes, content, exec::RawOptions{});
    store::drop_from_page_cache(store::open_read(source));
    const double seconds = seconds_of([&] { exec::read_file(source, exec::ReadBy::kDirect, raw); });
    store::syscalls().unlinkat(AT_FDCWD, source.c_str(), 0);
    return seconds;
  });
  return storage;
}

}  // namespace shardtool::api
