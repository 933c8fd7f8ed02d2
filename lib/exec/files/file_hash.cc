#include "lib/exec/files/file_hash.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <numeric>

#include "kernels/sha/sha.h"
#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/exec/files/data_file.h"
#include "lib/exec/files/file_blocks.h"
#include "lib/exec/progress_meter.h"
#include "lib/exec/workers.h"

namespace shardtool::exec {
namespace {

kernels::Sha begin_hash(const FileToHash& file) {
  if (file.hash == FileHash::kSha256) return kernels::Sha(kernels::ShaKind::kSha256);
  kernels::Sha hash(kernels::ShaKind::kSha1);
  const std::string head = "blob " + std::to_string(file.bytes);
  hash.update(std::as_bytes(std::span(head.c_str(), head.size() + 1)));
  return hash;
}

i64 total_bytes(std::span<const FileToHash> files) {
  i64 total = 0;
  for (const FileToHash& file : files) total += file.bytes;
  return total;
}

class HashRun {
 public:
  HashRun(std::span<const FileToHash> files, const Resources& resources)
      : files_(files),
        resources_(resources),
        hashes_(files.size()),
        largest_first_(files.size()),
        progress_(resources.on_progress, total_bytes(files)) {
    // The last file to be begun is a small one, so that the threads end together.
    std::iota(largest_first_.begin(), largest_first_.end(), size_t{0});
    std::stable_sort(largest_first_.begin(), largest_first_.end(),
                     [&](size_t a, size_t b) { return files[a].bytes > files[b].bytes; });
  }

  std::vector<std::string> go() {
    run_workers(std::min(threads_with_buffers(resources_, kBlockBufferBytes), std::ssize(files_)),
                [this](const std::atomic<bool>& stop) { work(stop); });
    progress_.finish();
    return std::move(hashes_);
  }

 private:
  void work(const std::atomic<bool>& stop) {
    const PageBuffer buffer(kBlockBufferBytes);
    for (size_t i = next_++; i < files_.size(); i = next_++) {
      const size_t file = largest_first_[i];
      hashes_[file] = hash(files_[file], buffer, stop);
    }
  }

  std::string hash(const FileToHash& file, const PageBuffer& buffer,
                   const std::atomic<bool>& stop) {
    const SourceFile source(file.path);
    if (source.size() != file.bytes) {
      throw Error(ErrorCode::kInputChanged, "the file has another size than before")
          .at({file.path, 0, 0, {}});
    }
    kernels::Sha hash = begin_hash(file);
    const std::string name = std::filesystem::path(file.path).filename().string();
    read_blocks(source, 0, file.bytes, buffer, [&](std::span<const std::byte> block) {
      check_interrupted();
      if (stop) throw Error(ErrorCode::kInterrupted, "another file could not be hashed");
      hash.update(block);
      progress_.add(std::ssize(block), name);
    });
    source.check_unchanged();
    return hash.finish();
  }

  std::span<const FileToHash> files_;
  const Resources& resources_;
  std::vector<std::string> hashes_;
  std::vector<size_t> largest_first_;
  std::atomic<size_t> next_ = 0;
  ProgressMeter progress_;
};

}  // namespace

std::vector<std::string> hash_files(std::span<const FileToHash> files, const Resources& resources) {
  return HashRun(files, resources).go();
}

}  // namespace shardtool::exec
