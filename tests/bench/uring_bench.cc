// uring_bench FOLDER [GIB] [ROUNDS]
//
// Compares io_uring with threads that read and write: copies the blocks of one file with direct I/O
// to four others, in interleaved rounds; no digests, no tensors. The source is on the device
// (direct reads) or in the page cache (buffered reads).

#include <fcntl.h>
#include <fmt/format.h>
#include <liburing.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/checked.h"
#include "tests/bench/command_sample.h"

namespace {

namespace fs = std::filesystem;
using shardtool::i64;

constexpr i64 kBlock = 4 << 20;
constexpr size_t kTargets = 4;

i64 checked(i64 result, const char* what) {
  if (result < 0) throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
  return result;
}

/// Checks an io_uring result, which carries the error.
i64 checked_uring(int result, const char* what) {
  errno = result < 0 ? -result : 0;
  return checked(result, what);
}

void require_whole(i64 bytes) {
  if (bytes != kBlock) throw std::runtime_error("a transfer was cut short");
}

/// Page-aligned blocks, in huge pages if available.
class Blocks {
 public:
  explicit Blocks(size_t count) : bytes_(count * kBlock) {
    memory_ = static_cast<std::byte*>(std::aligned_alloc(2 << 20, bytes_));
    if (memory_ == nullptr) throw std::bad_alloc();
    ::madvise(memory_, bytes_, MADV_HUGEPAGE);
    std::fill_n(memory_, bytes_, std::byte{0});
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  ~Blocks() { std::free(memory_); }
  std::byte* at(size_t block) const { return memory_ + block * kBlock; }

 private:
  size_t bytes_;
  std::byte* memory_;
};

struct Files {
  int source = -1;
  std::array<int, kTargets> targets{};
  i64 blocks = 0;

  int target_of(i64 block) const { return targets[static_cast<size_t>(block) % kTargets]; }
  static i64 target_offset(i64 block) { return block / static_cast<i64>(kTargets) * kBlock; }
};

/// Copies like the engine: every thread reads a block, writes it, and takes the next.
void by_threads(const Files& files, int threads) {
  std::atomic<i64> next = 0;
  std::vector<std::jthread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      const Blocks memory(1);
      for (i64 block = next++; block < files.blocks; block = next++) {
        require_whole(checked(::pread(files.source, memory.at(0), kBlock, block * kBlock), "read"));
        require_whole(checked(
            ::pwrite(files.target_of(block), memory.at(0), kBlock, Files::target_offset(block)),
            "write"));
      }
    });
  }
}

/// One thread with `depth` blocks in flight in registered memory; a block is written as soon as it
/// is read.
class Ring {
 public:
  Ring(const Files& files, unsigned depth) : files_(files), memory_(depth), work_(depth) {
    checked_uring(io_uring_queue_init(depth, &ring_, 0), "io_uring");
    std::vector<iovec> buffers;
    for (size_t slot = 0; slot < depth; ++slot) buffers.push_back({memory_.at(slot), kBlock});
    checked_uring(io_uring_register_buffers(&ring_, buffers.data(), depth), "registered buffers");
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() { io_uring_queue_exit(&ring_); }

  void go() {
    i64 written = 0;
    for (size_t slot = 0; slot < work_.size() && next_ < files_.blocks; ++slot) read(slot);
    while (written < files_.blocks) {
      checked_uring(io_uring_submit_and_wait(&ring_, 1), "submit");
      io_uring_cqe* done = nullptr;
      while (io_uring_peek_cqe(&ring_, &done) == 0) {
        const auto slot = static_cast<size_t>(io_uring_cqe_get_data64(done));
        require_whole(checked_uring(done->res, "transfer"));
        io_uring_cqe_seen(&ring_, done);
        if (work_[slot].is_read) {
          write(slot);
          continue;
        }
        ++written;
        if (next_ < files_.blocks) read(slot);
      }
    }
  }

 private:
  struct Work {
    i64 block = 0;
    bool is_read = false;  ///< else it is being written
  };

  void read(size_t slot) {
    work_[slot] = {next_++, true};
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    io_uring_prep_read_fixed(entry, files_.source, memory_.at(slot), kBlock,
                             static_cast<__u64>(work_[slot].block * kBlock),
                             static_cast<int>(slot));
    io_uring_sqe_set_data64(entry, slot);
  }
  void write(size_t slot) {
    work_[slot].is_read = false;
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    io_uring_prep_write_fixed(entry, files_.target_of(work_[slot].block), memory_.at(slot), kBlock,
                              static_cast<__u64>(Files::target_offset(work_[slot].block)),
                              static_cast<int>(slot));
    io_uring_sqe_set_data64(entry, slot);
  }

  const Files& files_;
  Blocks memory_;
  std::vector<Work> work_;
  io_uring ring_{};
  i64 next_ = 0;
};

void by_ring(const Files& files, unsigned depth) {
  Ring(files, depth).go();
}

struct Method {
  std::string name;
  std::function<void(const Files&)> move;
  std::vector<double> seconds = {};
  std::vector<double> cpu = {};
  std::vector<double> ratios = {};  ///< speed relative to the first method of the same round
};

class Bench {
 public:
  Bench(fs::path folder, i64 bytes) : folder_(std::move(folder)), blocks_(bytes / kBlock) {
    fs::create_directories(folder_);
    const Blocks memory(1);
    for (i64 i = 0; i < kBlock; ++i) memory.at(0)[i] = static_cast<std::byte>(i * 2654435761 >> 13);
    const int file = open(source(), O_WRONLY | O_CREAT | O_TRUNC);
    for (i64 block = 0; block < blocks_; ++block) {
      require_whole(checked(::write(file, memory.at(0), kBlock), "write"));
    }
    checked(::fsync(file), "fsync");
    ::close(file);
  }

  void round(std::vector<Method>& methods, bool cold) const {
    for (Method& method : methods) {
      Files files = opened(cold);
      const auto begin = std::chrono::steady_clock::now();
      const std::clock_t cpu_begin = std::clock();
      method.move(files);
      for (const int target : files.targets) checked(::fsync(target), "fsync");
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      method.seconds.push_back(took.count());
      method.cpu.push_back(static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC);
      method.ratios.push_back(methods.front().seconds.back() / took.count());
      ::close(files.source);
      for (const int target : files.targets) ::close(target);
    }
  }

  double gigabytes() const { return static_cast<double>(blocks_ * kBlock) / 1e9; }

 private:
  std::string source() const { return folder_ / "source"; }

  static int open(const std::string& path, int flags) {
    return static_cast<int>(checked(::open(path.c_str(), flags | O_CLOEXEC, 0644), path.c_str()));
  }

  /// Drops the source from the page cache, or reads it into it; creates and allocates the targets.
  Files opened(bool cold) const {
    const int through_cache = open(source(), O_RDONLY);
    if (cold) ::posix_fadvise(through_cache, 0, 0, POSIX_FADV_DONTNEED);
    const Blocks memory(1);
    for (i64 block = 0; !cold && block < blocks_; ++block) {
      require_whole(checked(::pread(through_cache, memory.at(0), kBlock, block * kBlock), "read"));
    }
    Files files;
    files.blocks = blocks_;
    files.source = cold ? open(source(), O_RDONLY | O_DIRECT) : ::dup(through_cache);
    ::close(through_cache);
    for (size_t t = 0; t < kTargets; ++t) {
      const std::string path = folder_ / fmt::format("target-{}", t);
      fs::remove(path);
      files.targets[t] = open(path, O_WRONLY | O_CREAT | O_EXCL | O_DIRECT);
      checked(
          ::fallocate(files.targets[t], 0, 0, (blocks_ / static_cast<i64>(kTargets) + 1) * kBlock),
          "fallocate");
    }
    return files;
  }

  fs::path folder_;
  i64 blocks_;
};

void print(const std::vector<Method>& methods, double gigabytes) {
  using shardtool::bench::median;
  fmt::print("{:<34} {:>8} {:>7} {:>9}  {}\n", "method", "seconds", "GB/s", "CPU s/GB",
             "speed against 4 threads (median of rounds, min..max)");
  for (const Method& method : methods) {
    const auto [least, most] = std::minmax_element(method.ratios.begin(), method.ratios.end());
    const double seconds = median(method.seconds);
    fmt::print("{:<34} {:>8.2f} {:>7.2f} {:>9.3f}  {:.2f} ({:.2f}..{:.2f})\n", method.name, seconds,
               gigabytes / seconds, median(method.cpu) / gigabytes, median(method.ratios), *least,
               *most);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    fmt::print(stderr, "usage: uring_bench FOLDER [GIB] [ROUNDS]\n");
    return 2;
  }
  const i64 gib = argc > 2 ? std::atoi(argv[2]) : 4;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 5;
  const Bench bench(argv[1], gib << 30);
  for (const bool cold : {false, true}) {
    std::vector<Method> methods{
        {"4 threads", [](const Files& files) { by_threads(files, 4); }},
        {"2 threads", [](const Files& files) { by_threads(files, 2); }},
        {"8 threads", [](const Files& files) { by_threads(files, 8); }},
        {"io_uring, 4 blocks in flight", [](const Files& files) { by_ring(files, 4); }},
        {"io_uring, 8 blocks in flight", [](const Files& files) { by_ring(files, 8); }},
        {"io_uring, 16 blocks in flight", [](const Files& files) { by_ring(files, 16); }}};
    for (int round = 0; round < rounds; ++round) bench.round(methods, cold);
    fmt::print("\nsource {}the page cache, {} GiB, {} rounds\n", cold ? "not in " : "in ", gib,
               rounds);
    print(methods, bench.gigabytes());
  }
  fs::remove_all(argv[1]);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "uring_bench: {}\n", error.what());
  return 1;
}
