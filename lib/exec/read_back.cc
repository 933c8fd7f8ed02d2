#include "shardtool/exec/read_back.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "shardtool/base/error.h"
#include "shardtool/exec/range_hash.h"

namespace shardtool::exec {
namespace {

constexpr int kDefaultThreads = 4;

class Reading {
 public:
  Reading(std::span<const WrittenRange> ranges, std::span<const SourceFile> files,
          const StreamOptions& options)
      : ranges_(ranges), files_(files), options_(options), same_(ranges.size()) {
    for (const WrittenRange& range : ranges) progress_.bytes_total += range.bytes;
    progress_.item = "reading back";
  }

  std::vector<bool> go() {
    {
      const int threads = options_.threads > 0 ? options_.threads : kDefaultThreads;
      std::vector<std::jthread> helpers;
      for (int i = 1; i < std::min(threads, static_cast<int>(ranges_.size())); ++i) {
        // A machine that refuses threads is served by fewer.
        try {
          helpers.emplace_back([this] { work(); });
        } catch (const std::system_error&) {
          break;
        }
      }
      work();
    }
    if (failure_) std::rethrow_exception(failure_);
    return {same_.begin(), same_.end()};
  }

 private:
  void work() {
    try {
      for (size_t i = next_++; i < ranges_.size() && !stopped_; i = next_++) {
        if (options_.cancel && *options_.cancel) {
          throw Error(ErrorCode::kInterrupted, "interrupted");
        }
        const WrittenRange& range = ranges_[i];
        same_[i] = hash_range(files_[static_cast<size_t>(range.file)], range.offset, range.bytes) ==
                   range.xxh3;
        report(range.bytes);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stopped_ = true;
    }
  }

  void report(i64 bytes) {
    const std::lock_guard lock(mutex_);
    progress_.bytes_done += bytes;
    if (options_.on_progress) options_.on_progress(progress_);
  }

  std::span<const WrittenRange> ranges_;
  std::span<const SourceFile> files_;
  const StreamOptions& options_;
  std::vector<char> same_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  std::exception_ptr failure_;
  Progress progress_;
};

}  // namespace

std::vector<bool> read_back(std::span<const WrittenRange> ranges, std::span<const SourceFile> files,
                            const StreamOptions& options) {
  return Reading(ranges, files, options).go();
}

}  // namespace shardtool::exec
