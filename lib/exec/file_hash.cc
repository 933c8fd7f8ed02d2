#include "shardtool/exec/file_hash.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <numeric>

#include "shardtool/base/error.h"
#include "shardtool/exec/data_file.h"
#include "shardtool/exec/page_buffer.h"
#include "shardtool/exec/workers.h"
#include "shardtool/kernels/sha/sha.h"

namespace shardtool::exec {
namespace {

constexpr int kDefaultThreads = 4;
constexpr i64 kBlockBytes = 1 << 20;
constexpr i64 kBufferBytes = kBlockBytes + 2 * kPageBytes;
constexpr auto kProgressInterval = std::chrono::milliseconds(100);

kernels::Sha begin_hash(const FileToHash& file) {
  if (file.hash == FileHash::kSha256) return kernels::Sha(kernels::ShaKind::kSha256);
  kernels::Sha hash(kernels::ShaKind::kSha1);
  const std::string head = "blob " + std::to_string(file.bytes);
  hash.update(std::as_bytes(std::span(head.c_str(), head.size() + 1)));
  return hash;
}

class Run {
 public:
  Run(std::span<const FileToHash> files, const StreamOptions& options)
      : files_(files), options_(options), hashes_(files.size()), largest_first_(files.size()) {
    // The last file to be begun is a small one, so that the threads end together.
    std::iota(largest_first_.begin(), largest_first_.end(), size_t{0});
    std::stable_sort(largest_first_.begin(), largest_first_.end(),
                     [&](size_t a, size_t b) { return files[a].bytes > files[b].bytes; });
    for (const FileToHash& file : files) progress_.bytes_total += file.bytes;
  }

  std::vector<std::string> go() {
    const int wanted = options_.threads > 0 ? options_.threads : kDefaultThreads;
    const i64 buffers = std::max<i64>(options_.max_memory / kBufferBytes, 1);
    run_workers(std::min({i64{wanted}, std::ssize(files_), buffers}),
                [this](const std::atomic<bool>& stop) { work(stop); });
    if (options_.on_progress) options_.on_progress(progress_);
    return std::move(hashes_);
  }

 private:
  void work(const std::atomic<bool>& stop) {
    const PageBuffer buffer(kBufferBytes);
    for (size_t i = next_++; i < files_.size(); i = next_++) {
      const size_t file = largest_first_[i];
      hashes_[file] = hash(files_[file], buffer.data(), stop);
    }
  }

  std::string hash(const FileToHash& file, std::byte* buffer, const std::atomic<bool>& stop) {
    const SourceFile source(file.path);
    if (source.size() != file.bytes) {
      throw Error(ErrorCode::kInputChanged, "the file has another size than before")
          .at({file.path, 0, 0, {}});
    }
    kernels::Sha hash = begin_hash(file);
    for (i64 at = 0; at < file.bytes; at += kBlockBytes) {
      if (stop || (options_.cancel != nullptr && options_.cancel->load())) {
        throw Error(ErrorCode::kInterrupted, "interrupted");
      }
      const i64 bytes = std::min(kBlockBytes, file.bytes - at);
      hash.update({source.read(buffer, bytes, at), static_cast<size_t>(bytes)});
      report(bytes, file.path);
    }
    source.check_unchanged();
    return hash.finish();
  }

  void report(i64 bytes, const std::string& path) {
    const std::lock_guard lock(mutex_);
    progress_.bytes_done += bytes;
    const auto now = std::chrono::steady_clock::now();
    if (!options_.on_progress || now - last_report_ < kProgressInterval) return;
    last_report_ = now;
    progress_.item = std::filesystem::path(path).filename().string();
    options_.on_progress(progress_);
  }

  std::span<const FileToHash> files_;
  const StreamOptions& options_;
  std::vector<std::string> hashes_;
  std::vector<size_t> largest_first_;
  std::atomic<size_t> next_ = 0;

  std::mutex mutex_;
  Progress progress_;
  std::chrono::steady_clock::time_point last_report_;
};

}  // namespace

std::vector<std::string> hash_files(std::span<const FileToHash> files,
                                    const StreamOptions& options) {
  return Run(files, options).go();
}

}  // namespace shardtool::exec
