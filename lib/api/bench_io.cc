#include "lib/api/bench_io.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <utility>

#include "lib/api/transfer/scratch_folder.h"
#include "lib/api/transform.h"
#include "lib/base/error.h"
#include "lib/base/median.h"
#include "lib/base/tensor_spec.h"
#include "lib/base/text.h"
#include "lib/exec/files/raw_transfer.h"
#include "lib/format/shard_files.h"
#include "lib/store/local/file.h"
#include "lib/store/local/page_cache.h"
#include "lib/store/local/syscalls.h"
#include "lib/store/local/tree.h"

namespace shardtool::api {
namespace {

namespace fs = std::filesystem;

constexpr i64 kDevices = 4;
constexpr i64 kColumns = 4096;  // 8 KiB per row; 2 KiB per device with column cuts
constexpr i64 kMaxTensorBytes = 16 << 20;
constexpr i64 kMaxRounds = 1000;

constexpr const char* kMapping = R"({"version": 1, "mesh": [{"axis": "tp", "size": 4}],
  "unused_rule": "ignore",
  "rules": [{"match": "rows.*", "strategy": "rowwise"}, {"match": "columns.*", "strategy": "columnwise"}]})";

/// Tensors of 16 MiB, half cut by rows and half by columns, and a smaller one for the remainder.
std::vector<TensorSpec> tensors_of(i64 bytes) {
  std::vector<TensorSpec> tensors;
  for (i64 done = 0; done < bytes;) {
    const i64 size = std::min(kMaxTensorBytes, bytes - done);
    const char* cut = tensors.size() % 2 == 0 ? "rows" : "columns";
    tensors.push_back({fmt::format("{}.{}", cut, tensors.size()),
                       Dtype::kBF16,
                       {size / (2 * kColumns), kColumns}});
    done += size;
  }
  return tensors;
}

void write_checkpoint(const std::string& path, i64 bytes, const std::string& content) {
  const std::vector<TensorSpec> tensors = tensors_of(bytes);
  const format::TensorTable table(tensors);
  const auto plan = format::plan_whole_files(table, INT64_MAX);
  store::File file = store::create_new(path);
  const std::string header = header_text(plan.files.at(0), table);
  store::write_exact(file, std::as_bytes(std::span(header)), 0);
  for (i64 at = 0; at < bytes; at += std::ssize(content)) {
    const auto part = std::as_bytes(std::span(content))
                          .first(static_cast<size_t>(std::min(bytes - at, std::ssize(content))));
    store::write_exact(file, part, std::ssize(header) + at);
  }
  store::sync(file);
  file.close_checked();
}

/// Median over the rounds of (seconds of a measure / seconds of split).
double reached(const IoMeasure& measure, const IoMeasure& split) {
  std::vector<double> ratios;
  for (size_t r = 0; r < measure.seconds.size(); ++r) {
    ratios.push_back(measure.seconds[r] / split.seconds[r]);
  }
  return median(ratios);
}

class Bench {
 public:
  explicit Bench(const BenchIoOptions& options)
      : options_(options), bytes_(options.bytes / kBenchUnit * kBenchUnit) {
    if (bytes_ < kBenchUnit) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("{} are too few to measure, expected {} or more",
                              format_bytes(options.bytes), format_bytes(kBenchUnit)));
    }
    if (options.rounds < 1 || options.rounds > kMaxRounds) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("{} rounds are not 1 to {}", options.rounds, kMaxRounds));
    }
    if (options.resources.threads > 0) raw_.threads = options.resources.threads;
  }

  BenchIoReport run() {
    require_space(options_.folder, 2 * bytes_);
    const ScratchFolder scratch(options_.folder, "bench");
    scratch_ = &scratch;
    content_ = random_bytes(4 << 20);
    scratch.make_folder("whole");
    write_checkpoint(source(), bytes_, content_);
    store::write_new_file(scratch / "mapping.json", kMapping);
    BenchIoReport report{fs::canonical(options_.folder).string(), bytes_, options_.rounds,
                         store::open_read_direct(source()).is_open(), measures()};
    for (i64 round = 0; round < options_.rounds; ++round) {
      for (size_t m = 0; m < report.measures.size(); ++m) {
        tell(report, round * std::ssize(report.measures) + static_cast<i64>(m), m);
        time(steps_[m], report.measures[m]);
      }
    }
    summarize(report);
    return report;
  }

 private:
  struct Measurement {
    std::function<void()> before;  ///< not measured
    std::function<void()> work;
  };

  std::string source() const { return *scratch_ / "whole/model.safetensors"; }

  void make_warm() const { exec::read_file(source(), exec::ReadBy::kPageCache, raw_); }
  void make_cold() const { store::drop_from_page_cache(store::open_read(source())); }

  void write_four_files() const {
    std::vector<std::string> paths;
    for (i64 i = 0; i < kDevices; ++i) paths.push_back(*scratch_ / fmt::format("written-{}", i));
    exec::write_files(paths, bytes_ / kDevices, content_, raw_);
  }

  void split_checkpoint() const {
    SplitOptions options;
    options.source = source();
    options.mapping.path = *scratch_ / "mapping.json";
    options.write.output = *scratch_ / "parts";
    options.write.resources = options_.resources;
    options.write.resources.on_progress = nullptr;
    split(options);
  }

  /// Returns the measures without times, in the order of a round, and fills steps_ to time them.
  std::vector<IoMeasure> measures() {
    std::vector<IoMeasure> found;
    const auto add = [&](const char* name, const char* what, Measurement step) {
      found.push_back({name, what, {}, {}, 0, 0, 0, 0});
      steps_.push_back(std::move(step));
    };
    const auto warm = [this] { make_warm(); };
    const auto nothing = [] {};
    add("copy", "copy through the page cache, sync",
        {warm, [this] { exec::copy_buffered(source(), *scratch_ / "copied"); }});
    add("direct_write", "write past the page cache, sync",
        {nothing, [this] { write_four_files(); }});
    add("direct_read", "read past the page cache",
        {[this] { make_cold(); },
         [this] { exec::read_file(source(), exec::ReadBy::kDirect, raw_); }});
    add("buffered_read", "read from the page cache", {warm, warm});
    add("digest", "CRC-64 and XXH3 on one core",
        {nothing, [this] { exec::digest_memory(bytes_); }});
    add("split_warm", "split, source in the page cache", {warm, [this] { split_checkpoint(); }});
    add("split_cold", "split, source on the device",
        {[this] { make_cold(); }, [this] { split_checkpoint(); }});
    return found;
  }

  void time(const Measurement& step, IoMeasure& measure) const {
    step.before();
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t cpu_begin = std::clock();
    step.work();
    const std::clock_t cpu_end = std::clock();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    clear();
    measure.seconds.push_back(std::max(took.count(), 1e-9));
    measure.cpu_seconds.push_back(static_cast<double>(cpu_end - cpu_begin) / CLOCKS_PER_SEC);
  }

  /// Deletes the files of a step.
  void clear() const {
    for (const char* name : {"copied", "written-0", "written-1", "written-2", "written-3"}) {
      store::syscalls().unlinkat(AT_FDCWD, (*scratch_ / name).c_str(), 0);
    }
    store::remove_tree(*scratch_ / "parts");
  }

  void tell(const BenchIoReport& report, i64 done, size_t measure) const {
    if (!options_.resources.on_progress) return;
    const i64 steps = options_.rounds * std::ssize(report.measures);
    options_.resources.on_progress({done * bytes_, steps * bytes_, report.measures[measure].what});
  }

  void summarize(BenchIoReport& report) const {
    const IoMeasure warm = report.measures[report.measures.size() - 2];
    const IoMeasure cold = report.measures.back();
    for (IoMeasure& measure : report.measures) {
      measure.bytes_per_second = static_cast<double>(bytes_) / median(measure.seconds);
      measure.cpu_seconds_per_gigabyte =
          1e9 * median(measure.cpu_seconds) / static_cast<double>(bytes_);
      measure.warm_split = reached(measure, warm);
      measure.cold_split = reached(measure, cold);
    }
  }

  const BenchIoOptions& options_;
  i64 bytes_;
  exec::RawOptions raw_;
  const ScratchFolder* scratch_ = nullptr;
  std::string content_;
  std::vector<Measurement> steps_;
};

}  // namespace

BenchIoReport bench_io(const BenchIoOptions& options) {
  return Bench(options).run();
}

}  // namespace shardtool::api
