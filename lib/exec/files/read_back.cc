#include "lib/exec/files/read_back.h"

#include <algorithm>
#include <atomic>

#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/exec/files/file_blocks.h"
#include "lib/exec/files/range_hash.h"
#include "lib/exec/progress_meter.h"
#include "lib/exec/workers.h"

namespace shardtool::exec {
namespace {

i64 total_bytes(std::span<const WrittenRange> ranges) {
  i64 total = 0;
  for (const WrittenRange& range : ranges) total += range.bytes;
  return total;
}

class Reading {
 public:
  Reading(std::span<const WrittenRange> ranges, std::span<const SourceFile> files,
          const Resources& resources)
      : ranges_(ranges),
        files_(files),
        resources_(resources),
        same_(ranges.size()),
        progress_(resources.on_progress, total_bytes(ranges)) {}

  std::vector<bool> go() {
    run_workers(std::min(threads_with_buffers(resources_, kBlockBufferBytes), std::ssize(ranges_)),
                [this](const std::atomic<bool>& stop) { work(stop); });
    return {same_.begin(), same_.end()};
  }

 private:
  void work(const std::atomic<bool>& stop) {
    const PageBuffer buffer(kBlockBufferBytes);
    for (size_t i = next_++; i < ranges_.size() && !stop; i = next_++) {
      check_interrupted();
      const WrittenRange& range = ranges_[i];
      const SourceFile& file = files_[static_cast<size_t>(range.file)];
      same_[i] = hash_range(file, range.offset, range.bytes, buffer) == range.xxh3;
      progress_.add(range.bytes, "reading back");
    }
  }

  std::span<const WrittenRange> ranges_;
  std::span<const SourceFile> files_;
  const Resources& resources_;
  std::vector<char> same_;
  std::atomic<size_t> next_ = 0;
  ProgressMeter progress_;
};

}  // namespace

std::vector<bool> read_back(std::span<const WrittenRange> ranges, std::span<const SourceFile> files,
                            const Resources& resources) {
  return Reading(ranges, files, resources).go();
}

}  // namespace shardtool::exec
